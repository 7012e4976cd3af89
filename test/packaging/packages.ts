import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect } from "vitest";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** In this order the archives of {@link packAll} are. */
export const PACKAGES = ["sdk", "provider", "server", "agent"] as const;

export const run = promisify(execFile);

/** What was fetched before is taken as it is, and an answer that does not come is asked for again. */
export const INSTALL_FLAGS =
  "--no-audit --no-fund --foreground-scripts --prefer-offline --fetch-timeout=30000".split(" ");

/** As a user's: `npm test` hands its own settings on, scripts that are ignored among them. */
const userEnv: NodeJS.ProcessEnv = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)),
);

/** @param timeout milliseconds after which npm is killed; 0: never */
export const npm = (args: readonly string[], cwd: string, timeout = 0) =>
  run("npm", args, { cwd, env: userEnv, timeout, maxBuffer: 64 * 1024 * 1024 });

/** The folder with what a release consists of, where that is what is to be tried. */
export const RELEASE = process.env.GATEHOUSE_RELEASE;

/** Packs the workspaces as a release would, or takes those of a release; answers their archives. */
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

/** Why tests are skipped that install, where npm does not reach its registry. */
export const OFFLINE = "npm reaches no registry";

/**
 * Whether npm's registry answers within a minute.
 * @throws what npm ended with where it got an answer
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

/** The copies of a package in a folder's `node_modules`, as paths in there. */
export const copiesOf = (name: string, folder: string): string[] =>
  readdirSync(join(folder, "node_modules"), { recursive: true, encoding: "utf8" }).filter((file) =>
    new RegExp(`(^|/node_modules/)${name}/package\\.json$`).test(file),
  );
