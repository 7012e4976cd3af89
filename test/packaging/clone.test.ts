import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { text } from "node:stream/consumers";
import { stripVTControlCharacters } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MINUTE } from "../../sdk/times.ts";
import { environmentWithout } from "../support/command.ts";
import { gitOnPath } from "../support/git.ts";
import { giveToNobody, isRoot, NOBODY } from "../support/nobody.ts";
import { cloneTo, OFFLINE, ROOT, reachesRegistry } from "./packages.ts";

/** An address without a listener. */
const DEAD_PROXY = "http://127.0.0.1:9";
const PROXIES = ["http_proxy", "https_proxy", "all_proxy"].flatMap((name) => [name, name.toUpperCase()]);
/**
 * One test file of each Vitest project. These tests start processes under another user id if the test run itself is
 * root.
 */
const ONE_FILE_EACH = ["test/sdk/case", "test/agent/sftp", "test/server/postgresql/gateway"];

/** The PATH without the folders of this repository. */
const systemPath = (process.env.PATH ?? "").split(delimiter).filter((folder) => !folder.startsWith(ROOT));

/** The environment of a new user: without the variables that npm, Vitest and this test run set. */
const environment: NodeJS.ProcessEnv = {
  ...environmentWithout("GATEHOUSE_", "PULUMI_", "TEST_", "VITEST", "NODE_", "npm_", "INIT_CWD"),
  // The variables of the certificate authority stay, since the connection to the npm registry may need them.
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

/** Fills a folder with links to all programs of the PATH, except the programs of OpenSSH. Returns the folder. */
function pathWithoutSsh(folder: string): string {
  mkdirSync(folder);
  // An ordinary user reads the folder, also if this process has a umask of 077.
  chmodSync(folder, 0o755);
  const programs = systemPath
    .filter((source) => existsSync(source))
    .flatMap((source) => readdirSync(source).map((name) => [name, join(source, name)] as const))
    .filter(([name]) => !/^(ssh|sftp|scp|slogin)/.test(name));
  // Like a PATH: of two programs with the same name, the folder contains the first one.
  for (const [name, path] of new Map(programs.reverse())) symlinkSync(path, join(folder, name));
  return folder;
}

/**
 * User id for the processes of an ordinary user. Undefined if the tests do not run as root: they already run as an
 * ordinary user.
 */
const ordinaryUser = isRoot ? NOBODY : undefined;

describe.skipIf(!gitOnPath || process.platform === "win32")(
  "the commands npm run demo, npm run docs:site and npm test, in a clone that only its owner can read",
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

    it("npm test and npm run docs:site pass, with a umask of 077", { timeout: 15 * MINUTE }, async ({
      skip,
    }) => {
      skip(!reached, OFFLINE);
      const site = await type(clone, "npm run docs:site");
      expect(site.output).toContain("The site is in docs/site/dist.");
      const { code, output } = await type(clone, `npm test -- ${ONE_FILE_EACH.join(" ")}`);
      expect(code, output).toBe(0);
      expect(output).toMatch(/Test Files +3 passed/);
    });

    // These tests run concurrently in one clone. Each of them first sets up the clone.
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

      it("npm test passes without HOME", async ({ skip }) => {
        skip(!reached, OFFLINE);
        const { HOME: _, ...env } = environment;
        const { code, output } = await type(clone, `npm test -- ${ONE_FILE_EACH[0]}`, { env });
        expect(code, output).toBe(0);
      });

      it("npm run demo passes for an ordinary user without ssh, with a proxy and a HOME that is not a folder", async ({
        skip,
      }) => {
        skip(!reached, OFFLINE);
        const node = spawnSync("node", ["--version"], { env: environment, uid: ordinaryUser });
        skip(node.error !== undefined, "only root can run this machine's Node");
        const proxies = Object.fromEntries(PROXIES.map((name) => [name, DEAD_PROXY]));
        const PATH = pathWithoutSsh(join(folder, "programs"));
        const env = { ...environment, ...proxies, PATH, HOME: "/dev/null" };
        const { code, output } = await type(clone, "npm run demo", { env, user: ordinaryUser });
        expect(code, output).toBe(0);
        expect(output).toContain("Skipped the logins: ssh is not on the PATH.");
        expect(output).toMatch(/^Done in /m);
      });
    });
  },
);
