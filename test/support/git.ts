import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** True where this machine has git. */
export const gitOnPath = spawnSync("git", ["--version"]).status === 0;

/** What a test's name says where there is none. */
export const gitLabel = gitOnPath ? "git" : "git (skipped: there is no git on the PATH)";

const SETTINGS = [
  "user.name=Test",
  "user.email=test@example.org",
  "commit.gpgSign=false",
  "tag.gpgSign=false",
  // A commit starts it, and newer versions of git go on with it after the commit has ended.
  "maintenance.auto=false",
];

/** A git repository in a folder that is there. */
export class TestRepository {
  readonly root: string;

  constructor(root: string) {
    this.root = root;
    this.git("-c", "init.defaultBranch=main", "init", "--quiet");
  }

  /** Its output, trimmed. */
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

  /** Commits everything that is not ignored, and answers the commit's id. */
  commit(message: string): string {
    this.git("add", "--all");
    this.git("commit", "--quiet", "--allow-empty", "--message", message);
    return this.git("rev-parse", "HEAD");
  }

  /** Everything that git itself keeps, by its path: what a command leaves behind shows here. */
  files(): Record<string, string> {
    const folder = join(this.root, ".git");
    const paths = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name))
      .sort();
    return Object.fromEntries(paths.map((path) => [path, readFileSync(path, "base64")]));
  }
}
