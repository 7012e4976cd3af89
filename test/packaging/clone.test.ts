import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  cpSync,
  existsSync,
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
import { giveToNobody, isRoot, NOBODY } from "../support/nobody.ts";
import { OFFLINE, ROOT, reachesRegistry } from "./packages.ts";

const MINUTE = 60_000;
/** An address without a listener. */
const DEAD_PROXY = "http://127.0.0.1:9";
const PROXIES = ["http_proxy", "https_proxy", "all_proxy"].flatMap((name) => [name, name.toUpperCase()]);
/** One file of each project, with processes that change their user if root starts them. */
const ONE_FILE_EACH = ["test/sdk/case", "test/agent/sftp", "test/server/postgresql/gateway"];

/** The PATH without programs that this repository installed. */
const systemPath = (process.env.PATH ?? "").split(delimiter).filter((folder) => !folder.startsWith(ROOT));

/** A new user's environment, without settings of npm, Vitest and this run. */
const environment: NodeJS.ProcessEnv = {
  ...environmentWithout("GATEHOUSE_", "PULUMI_", "TEST_", "VITEST", "NODE_", "npm_", "INIT_CWD"),
  // The registry may need the machine's own certificate authority.
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
  { env = environment, user }: { readonly env?: NodeJS.ProcessEnv; readonly user?: number | undefined } = {},
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

/** Copies the tracked and the new files of this repository. */
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
  // In reverse order, the first of two programs with one name wins.
  for (const [name, path] of new Map(programs.reverse())) symlinkSync(path, join(folder, name));
  return folder;
}

/** The user id of an ordinary user's processes; undefined for the user of the tests if that is not root. */
const ordinaryUser = isRoot ? NOBODY : undefined;

describe.skipIf(!gitOnPath || process.platform === "win32")(
  "a new user's two commands, in a clone that only its owner can read",
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

    // These tests run concurrently in one clone.
    describe.concurrent("at a path with a space and non-ASCII letters, concurrently", {
      timeout: 5 * MINUTE,
    }, () => {
      beforeAll(() => {
        const renamed = join(folder, "mes accès ø");
        renameSync(clone, renamed);
        clone = renamed;
        if (!isRoot) return;
        chmodSync(folder, 0o711);
        giveToNobody(clone);
      });

      it("npm run demo passes without ssh and HOME", async ({ skip }) => {
        skip(!reached, OFFLINE);
        const { HOME: _, ...env } = environment;
        const demo = await type(clone, "npm run demo", {
          env: { ...env, PATH: pathWithoutSsh(join(folder, "programs")) },
        });
        expectDone(demo);
        expect(demo.output).toContain("Skipped the logins: ssh is not on the PATH.");
      });

      it("npm run demo passes for an ordinary user, with a proxy and a HOME that is not a folder", async ({
        skip,
      }) => {
        skip(!reached, OFFLINE);
        const node = spawnSync("node", ["--version"], { env: environment, uid: ordinaryUser });
        skip(node.error !== undefined, "only root can run this machine's Node");
        const proxies = Object.fromEntries(PROXIES.map((name) => [name, DEAD_PROXY]));
        const env = { ...environment, ...proxies, HOME: "/dev/null" };
        expectDone(await type(clone, "npm run demo", { env, user: ordinaryUser }));
      });
    });
  },
);
