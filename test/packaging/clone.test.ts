import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  cpSync,
  existsSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { stripVTControlCharacters } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { environmentWithout } from "../support/command.ts";
import { gitOnPath } from "../support/git.ts";
import { OFFLINE, ROOT, reachesRegistry } from "./packages.ts";

const MINUTE = 60_000;
const isRoot = process.getuid?.() === 0;
/** `nobody` on every common system. */
const ORDINARY_USER = 65_534;
/** Nothing listens there. */
const DEAD_PROXY = "http://127.0.0.1:9";
const PROXIES = ["http_proxy", "https_proxy", "all_proxy"].flatMap((name) => [name, name.toUpperCase()]);
/** One file of each project, about processes that become another user where root starts them. */
const ONE_FILE_EACH = ["test/sdk/case", "test/agent/sftp", "test/server/postgresql/gateway"];

/** The machine's own programs, without those that this repository installed. */
const systemPath = (process.env.PATH ?? "").split(delimiter).filter((folder) => !folder.startsWith(ROOT));

/** A new user's environment: nothing of npm's, Vitest's or this run's settings. */
const environment: NodeJS.ProcessEnv = {
  ...environmentWithout("GATEHOUSE_", "PULUMI_", "TEST_", "VITEST", "NODE_", "npm_", "INIT_CWD"),
  // A registry behind an authority of the machine's own.
  ...(process.env.NODE_EXTRA_CA_CERTS && { NODE_EXTRA_CA_CERTS: process.env.NODE_EXTRA_CA_CERTS }),
  PATH: systemPath.join(delimiter),
};

interface Typed {
  readonly code: number | null;
  readonly output: string;
}

/** Types a command in a clone, with a umask of 077. */
async function type(
  clone: string,
  command: string,
  { env = environment, user }: { readonly env?: NodeJS.ProcessEnv; readonly user?: number } = {},
): Promise<Typed> {
  const child = spawn("/bin/sh", ["-c", `umask 077; exec ${command} 2>&1`], {
    cwd: clone,
    env,
    stdio: ["ignore", "pipe", "inherit"],
    ...(user !== undefined && { uid: user, gid: user }),
  });
  const [output, [code]] = await Promise.all([
    text(child.stdout),
    once(child, "close") as Promise<[number | null]>,
  ]);
  return { code, output: stripVTControlCharacters(output) };
}

function expectDone({ code, output }: Typed): void {
  expect(code, output).toBe(0);
  expect(output).toMatch(/^Done in /m);
}

/** Copies what git knows of this repository, and what is new in it. */
function cloneTo(clone: string): void {
  const args = ["-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const files = execFileSync("git", args, { encoding: "utf8" }).split("\0").filter(Boolean);
  for (const file of files.filter((name) => existsSync(join(ROOT, name)))) {
    mkdirSync(dirname(join(clone, file)), { recursive: true });
    cpSync(join(ROOT, file), join(clone, file));
  }
}

/** A folder with the programs of the PATH, except OpenSSH's. */
function pathWithoutSsh(folder: string): string {
  mkdirSync(folder);
  const programs = systemPath
    .filter((source) => existsSync(source))
    .flatMap((source) => readdirSync(source).map((name) => [name, join(source, name)] as const))
    .filter(([name]) => !/^(ssh|sftp|scp|slogin)/.test(name));
  // Of two programs with one name, the first on the PATH is last here.
  for (const [name, path] of new Map(programs.reverse())) symlinkSync(path, join(folder, name));
  return folder;
}

/** True where only root can run Node, for example because Node is in root's home. */
const privateNode = () =>
  spawnSync("node", ["--version"], { env: environment, uid: ORDINARY_USER }).error !== undefined;

describe.skipIf(!gitOnPath || process.platform === "win32")(
  "a new user's two commands, in a clone that only its owner may read",
  { tags: ["long"] },
  () => {
    let folder: string;
    let clone: string;
    let reached: boolean;

    beforeAll(async () => {
      reached = await reachesRegistry();
      folder = mkdtempSync(join(tmpdir(), "gatehouse-clone-"));
      chmodSync(folder, 0o700);
      clone = join(folder, "clone");
      cloneTo(clone);
    });
    afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));

    it("npm run demo and npm test pass, with a umask of 077", { timeout: 15 * MINUTE }, async ({ skip }) => {
      skip(!reached, OFFLINE);
      expectDone(await type(clone, "npm run demo"));
      const { code, output } = await type(clone, `npm test -- ${ONE_FILE_EACH.join(" ")}`);
      expect(code, output).toBe(0);
      expect(output).toMatch(/Test Files +3 passed/);
    });

    // The two run side by side, because each takes a minute.
    it("npm run demo passes twice at once: without ssh and HOME, and as an ordinary user with a proxy", {
      timeout: 5 * MINUTE,
    }, async ({ skip }) => {
      skip(!reached, OFFLINE);
      const renamed = join(folder, "mes accès ø");
      renameSync(clone, renamed);
      clone = renamed;
      const user = isRoot && !privateNode() ? ORDINARY_USER : undefined;
      if (user !== undefined) {
        chmodSync(folder, 0o711);
        for (const path of ["", ...readdirSync(clone, { recursive: true, encoding: "utf8" })]) {
          lchownSync(join(clone, path), user, user);
        }
      }
      const { HOME: _, ...homeless } = environment;
      const withProxy = { ...environment, ...Object.fromEntries(PROXIES.map((name) => [name, DEAD_PROXY])) };
      const [withoutSsh, behindProxy] = await Promise.all([
        type(clone, "npm run demo", {
          env: { ...homeless, PATH: pathWithoutSsh(join(folder, "programs")) },
        }),
        type(clone, "npm run demo", { env: { ...withProxy, HOME: "/dev/null" }, user }),
      ]);
      expectDone(withoutSsh);
      expect(withoutSsh.output).toContain("Skipped the logins: there is no ssh on the PATH.");
      expectDone(behindProxy);
    });
  },
);
