import { execFile } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { DriftNotice } from "../../provider/drift/driftNotice.ts";
import type { CommandResult } from "../support/command.ts";
import { createKey } from "../support/fleet.ts";
import { pulumiOnPath, Stack } from "../support/gatehouse.ts";
import { gitLabel, gitOnPath, TestRepository } from "../support/git.ts";
import { sharedFleet } from "../support/shared.ts";
import { expectHardened, expectUnderstood, withoutSystemd } from "../support/systemd.ts";
import { startWebhook, type TestWebhook } from "../support/webhook.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const RECIPE = join(ROOT, "examples", "pipelines", "timer");

/** The values of a key of a unit. */
const valuesOf = (unit: string, key: string): string[] =>
  [...unit.matchAll(new RegExp(`^${key}=(.*)$`, "gm"))].map(([, value = ""]) => value);

describe.skipIf(!gitOnPath)(`drift every night, by ${gitLabel}`, { timeout: 180_000 }, () => {
  const fleet = sharedFleet();
  let hook: TestWebhook;
  let folder: string;
  let origin: TestRepository;

  beforeAll(async () => {
    hook = await startWebhook();
    await fleet.enroll("web-01");
    folder = mkdtempSync(join(tmpdir(), "gatehouse-timer-"));
    // The clone has nothing to install: its packages are above it.
    symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
    await makeOrigin();
    await placeRecipe();
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    await hook?.stop();
  });

  /** A repository with a program, which was applied. */
  async function makeOrigin(): Promise<void> {
    const program = join(folder, "origin");
    cpSync(join(ROOT, "examples", "fleet-access", "keys"), join(program, "keys"), { recursive: true });
    origin = new TestRepository(program);
    const manifest = { name: "policy", private: true, type: "commonjs", main: "index.js" };
    const lock = {
      ...{ name: "policy", lockfileVersion: 3, requires: true },
      packages: { "": { name: "policy" } },
    };
    origin.write({
      "Pulumi.yaml": "name: policy\nruntime: { name: nodejs, options: { typescript: false } }\n",
      "package.json": JSON.stringify(manifest),
      "package-lock.json": JSON.stringify(lock),
      ".gitignore": "node_modules\naccess.notified.*\n",
      "access.ignore": "ApiKey nightly until 2999-01-31: looks for drift\n",
      "index.js": `const { PublicKey, sshKeyFile } = require("@gatehouse-access/provider");
new PublicKey("ana", { name: "ana", data: sshKeyFile("keys/ana.pub"), username: "^root$", filter: { hostname: ".*" } });
`,
    });
    mkdirSync(join(folder, "states"));
    const stack = new Stack({
      ...{ program, folder: join(folder, "states"), engine: pulumiOnPath ? "cli" : "embedded", name: "prod" },
      env: fleet.env,
    });
    await stack.result(["up", "--yes", "--skip-preview"]);
    origin.commit("The policy");
    origin.git("clone", "--quiet", origin.root, join(folder, "policy"));
  }

  /** The files of the recipe with this machine's folders, and their settings and credentials. */
  async function placeRecipe(): Promise<void> {
    const apiKey = await fleet.client.createApiKey({
      body: { name: "nightly", role: "observer", expiresAt: 30 },
    });
    const secrets = {
      "api-key": apiKey.id,
      passphrase: "correct horse battery staple",
      webhook: hook.url,
    };
    mkdirSync(join(folder, "credentials"));
    for (const [name, secret] of Object.entries(secrets))
      writeFileSync(join(folder, "credentials", name), secret);
    const settings: Record<string, string> = {
      PATH: `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`,
      NOTIFY: "json",
      FLAGS: pulumiOnPath ? '""' : '"--engine embedded"',
      GATEHOUSE_URL: fleet.env.GATEHOUSE_URL ?? "",
    };
    for (const name of readdirSync(RECIPE)) {
      const text = readFileSync(join(RECIPE, name), "utf8")
        .replaceAll(/\/(etc|usr\/local\/lib|var\/lib)\/gatehouse-drift/g, folder)
        .replaceAll(/^(\w+)=.*$/gm, (line, key) =>
          name === "drift.env" && key in settings ? `${key}=${settings[key]}` : line,
        );
      writeFileSync(join(folder, name), text, { mode: 0o755 });
    }
  }

  /** What a scheduler does: a command by a shell, with an environment that has next to nothing. */
  const scheduled = (command: string, env: Record<string, string> = {}) =>
    new Promise<CommandResult>((resolve) => {
      const home = join(folder, "home");
      mkdirSync(home, { recursive: true });
      const bare = {
        HOME: home,
        LOGNAME: "gatehouse-drift",
        SHELL: "/bin/sh",
        PATH: "/usr/bin:/bin",
        ...env,
      };
      const child = execFile("/bin/sh", ["-c", command], { cwd: home, env: bare }, (_error, stdout, stderr) =>
        resolve({ code: child.exitCode, stdout, stderr }),
      );
    });

  const byCron = () => {
    const line =
      readFileSync(join(folder, "gatehouse-drift.cron"), "utf8").trimEnd().split("\n").at(-1) ?? "";
    const [, command = ""] = /^(?:\S+\s+){5}gatehouse-drift\s+(.*)$/.exec(line) ?? [];
    return scheduled(command);
  };

  const bySystemd = () => {
    const unit = readFileSync(join(folder, "gatehouse-drift.service"), "utf8");
    const [settings = ""] = valuesOf(unit, "EnvironmentFile");
    const env = Object.fromEntries(
      [...readFileSync(settings, "utf8").matchAll(/^(\w+)="?(.*?)"?$/gm)].map(([, key = "", value = ""]) => [
        key,
        value,
      ]),
    );
    // Those that the unit loads, and no others.
    const credentials = mkdtempSync(join(folder, "loaded-"));
    for (const [name = "", file = ""] of valuesOf(unit, "LoadCredential").map((value) => value.split(":"))) {
      cpSync(file, join(credentials, name));
    }
    const [command = ""] = valuesOf(unit, "ExecStart");
    return scheduled(command, { ...env, CREDENTIALS_DIRECTORY: credentials });
  };

  it("is silent while there is none, tells the webhook of what is found, and says why where it fails", {
    tags: ["long"],
  }, async () => {
    const silent = (code: number) => ({ code, stdout: "", stderr: "" });
    expect(await byCron()).toEqual(silent(0));
    expect(hook.messages).toEqual([]);

    await createKey(fleet.client, "backdoor");
    origin.write({ "README.md": "What there is\n" });
    const merged = origin.commit("A page");
    expect(await bySystemd()).toEqual(silent(2));
    expect(await byCron()).toEqual(silent(2));
    expect(new TestRepository(join(folder, "policy")).git("rev-parse", "HEAD")).toBe(merged);
    const [message, ...more] = hook.messages as DriftNotice[];
    expect(more).toEqual([]);
    expect(message).toMatchObject({ event: "found", findings: [expect.stringContaining("backdoor")] });

    writeFileSync(join(folder, "credentials", "api-key"), "4d6e1d2c-0000-4000-8000-000000000000");
    const failed = await byCron();
    expect(failed.code).toBe(1);
    expect(failed.stderr).toMatch(/error: .*credential|error: .*API key/i);
  });
});

const why = withoutSystemd && ` (${withoutSystemd})`;

describe.skipIf(why)(`the units${why ?? ""}`, () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "gatehouse-units-"));
    // At a path that a unit need not quote.
    const recipe = join(folder, "recipe");
    symlinkSync(RECIPE, recipe);
    for (const name of ["gatehouse-drift.service", "gatehouse-drift.timer"]) {
      const text = readFileSync(join(RECIPE, name), "utf8").replaceAll(
        /\/usr\/local\/lib\/gatehouse-drift/g,
        recipe,
      );
      writeFileSync(join(folder, name), text);
    }
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("are understood, and leave little open", () => {
    const service = join(folder, "gatehouse-drift.service");
    expectUnderstood(service, join(folder, "gatehouse-drift.timer"));
    expectHardened(service, 20);
  });
});
