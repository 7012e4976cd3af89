import { execFile, execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect } from "vitest";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** The names of the packages, in the same order as the archives that {@link packAll} returns. */
const PACKAGES = ["sdk", "provider", "server", "agent"] as const;

export const run = promisify(execFile);

/** Flags for npm: prefer cached packages, and limit the time that npm waits for a response before it retries. */
export const INSTALL_FLAGS =
  "--no-audit --no-fund --foreground-scripts --prefer-offline --fetch-timeout=30000".split(" ");

/** The environment without the variables that `npm test` sets, for example to ignore scripts. */
const userEnv: NodeJS.ProcessEnv = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)),
);

/** Runs npm. @param timeout milliseconds before npm is killed; 0 for no limit */
export const npm = (args: readonly string[], cwd: string, timeout = 0) =>
  run("npm", args, { cwd, env: userEnv, timeout, maxBuffer: 64 * 1024 * 1024 });

/** The folder of a release to test. Undefined if the tests pack the packages themselves. */
export const RELEASE = process.env.GATEHOUSE_RELEASE;

/**
 * Returns the paths of the package archives. Uses the archives of the release to test, or packs the workspaces like a
 * release.
 */
export const packAll = (folder: string): Promise<string[]> =>
  Promise.all(PACKAGES.map((name) => (RELEASE === undefined ? pack(name, folder) : packed(name, RELEASE))));

async function packed(name: string, folder: string): Promise<string> {
  const { version } = JSON.parse(readFileSync(join(ROOT, name, "package.json"), "utf8"));
  const file = join(folder, `gatehouse-access-${name}-${version}.tgz`);
  expect(existsSync(file), file).toBe(true);
  return file;
}

async function pack(name: string, folder: string): Promise<string> {
  const { stdout } = await npm(["pack", "--json", "--pack-destination", folder], join(ROOT, name));
  const [{ filename, files }] = JSON.parse(stdout) as [{ filename: string; files: { path: string }[] }];
  expect(files.map(({ path }) => path)).toEqual(expect.arrayContaining(["LICENSE", "README.md"]));
  return join(folder, filename);
}

/** The reason that skipped tests report if npm cannot connect to its registry. */
export const OFFLINE = "npm reaches no registry";

/**
 * Returns true if npm's registry responds within a minute.
 * @throws the error of npm if the registry responded
 */
export async function reachesRegistry(): Promise<boolean> {
  try {
    await npm(["view", "typescript", "version", "--prefer-online"], ROOT, 60_000);
    return true;
  } catch (error) {
    const { killed, stderr = "" } = error as { readonly killed?: boolean; readonly stderr?: string };
    if (killed || /E(NOTFOUND|AI_AGAIN|CONNREFUSED|TIMEDOUT|NETUNREACH)/.test(stderr)) return false;
    throw error;
  }
}

/** Returns the paths of all copies of a package, relative to the `node_modules` of a folder. */
export const copiesOf = (name: string, folder: string): string[] =>
  readdirSync(join(folder, "node_modules"), { recursive: true, encoding: "utf8" }).filter((file) =>
    new RegExp(`(^|/node_modules/)${name}/package\\.json$`).test(file),
  );

/** Copies the files of this repository that git tracks, and new files that git does not ignore. */
export function cloneTo(clone: string): void {
  const args = ["-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const files = execFileSync("git", args, { encoding: "utf8" }).split("\0").filter(Boolean);
  for (const file of files.filter((name) => existsSync(join(ROOT, name)))) {
    mkdirSync(dirname(join(clone, file)), { recursive: true });
    cpSync(join(ROOT, file), join(clone, file));
  }
}
