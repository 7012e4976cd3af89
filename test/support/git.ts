import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** True if git is installed. */
export const gitOnPath = spawnSync("git", ["--version"]).status === 0;

/** A label for test titles. If git is not installed, the label contains the reason. */
export const gitLabel = gitOnPath ? "git" : "git (skipped: git is not on the PATH)";

const SETTINGS = [
  "user.name=Test",
  "user.email=test@example.org",
  "commit.gpgSign=false",
  "tag.gpgSign=false",
  // Turns off git's automatic maintenance. Newer versions continue it in the background after a commit.
  "maintenance.auto=false",
];

/** A git repository in an existing folder. */
export class TestRepository {
  readonly root: string;

  constructor(root: string) {
    this.root = root;
    this.git("-c", "init.defaultBranch=main", "init", "--quiet");
  }

  /** Runs git, and returns its output without surrounding white space. */
  git(...args: readonly string[]): string {
    const settings = SETTINGS.flatMap((setting) => ["-c", setting]);
    return execFileSync("git", ["-C", this.root, ...settings, ...args], { encoding: "utf8" }).trim();
  }

  write(files: Readonly<Record<string, string>>): void {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(this.root, path)), { recursive: true });
      writeFileSync(join(this.root, path), text);
    }
  }

  /** Commits all files that are not ignored. Returns the commit's id. */
  commit(message: string): string {
    this.git("add", "--all");
    this.git("commit", "--quiet", "--allow-empty", "--message", message);
    return this.git("rev-parse", "HEAD");
  }

  /** Returns the content of git's own files, by path. Tests compare it to detect changes by a command. */
  files(): Record<string, string> {
    const folder = join(this.root, ".git");
    const paths = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name))
      .sort();
    return Object.fromEntries(paths.map((path) => [path, readFileSync(path, "base64")]));
  }
}
