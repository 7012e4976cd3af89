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
import { sharedFleet } from "../support/sharedFleet.ts";
import { startSparseService } from "../support/sparseService.ts";
import { expectHardened, expectUnderstood, withoutSystemd } from "../support/systemd.ts";
import { startWebhook, type TestWebhook } from "../support/webhook.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const RECIPE = join(ROOT, "examples", "pipelines", "timer");

/** Returns all values of a key in a systemd unit. */
const valuesOf = (unit: string, key: string): string[] =>
  [...unit.matchAll(new RegExp(`^${key}=(.*)$`, "gm"))].map(([, value = ""]) => value);

describe.skipIf(!gitOnPath)(`nightly drift detection, with ${gitLabel}`, { timeout: 180_000 }, () => {
  const fleet = sharedFleet();
  let hook: TestWebhook;
  let folder: string;
  let origin: TestRepository;

  beforeAll(async () => {
    hook = await startWebhook();
    await fleet.enroll("web-01");
    folder = mkdtempSync(join(tmpdir(), "gatehouse-timer-"));
    // Node.js finds the packages of the cloned repository in the parent folder, so the example job installs none.
    symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
    await createOrigin();
    await placeRecipe();
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    await hook?.stop();
  });

  /** Creates a repository with an applied program. */
  async function createOrigin(): Promise<void> {
    const program = join(folder, "origin");
    cpSync(join(ROOT, "examples", "fleet-access", "keys"), join(program, "keys"), { recursive: true });
    origin = new TestRepository(program);
    const manifest = { name: "policy", private: true, type: "commonjs", main: "index.js" };
    const lock = {
      name: "policy",
      lockfileVersion: 3,
      requires: true,
      packages: { "": { name: "policy" } },
    };
    origin.write({
      "Pulumi.yaml": "name: policy\nruntime: { name: nodejs, options: { typescript: false } }\n",
      "package.json": JSON.stringify(manifest),
      "package-lock.json": JSON.stringify(lock),
      ".gitignore": "node_modules\naccess.notified.*\n",
      "access.ignore":
        "ApiKey nightly until 2999-01-31: detects drift\nApiKey hourly until 2999-01-31: removes access\n",
      "index.js": `const { PublicKey, sshKeyFile } = require("@gatehouse-access/provider");
new PublicKey("ana", { name: "ana", data: sshKeyFile("keys/ana.pub"), username: "^root$", filter: { hostname: ".*" } });
`,
    });
    mkdirSync(join(folder, "states"));
    const stack = new Stack({
      program,
      folder: join(folder, "states"),
      engine: pulumiOnPath ? "cli" : "embedded",
      name: "prod",
      env: fleet.env,
    });
    await stack.result(["up", "--yes", "--skip-preview"]);
    origin.commit("The policy");
    origin.git("clone", "--quiet", origin.root, join(folder, "policy"));
  }

  /**
   * Copies the files of examples/pipelines/timer, and replaces the folders, settings and credentials in them with those
   * of this test.
   */
  async function placeRecipe(): Promise<void> {
    const apiKey = await fleet.client.createApiKey({
      body: { name: "nightly", role: "observer", expiresAt: 30 },
    });
    const secrets = {
      "api-key": apiKey.id,
      passphrase: "correct horse battery staple",
      webhook: hook.url,
    };
    const remover = await fleet.client.createApiKey({
      body: { name: "hourly", role: "administrator", expiresAt: 30 },
    });
    mkdirSync(join(folder, "credentials"));
    for (const [name, secret] of Object.entries(secrets))
      writeFileSync(join(folder, "credentials", name), secret);
    cpSync(join(folder, "credentials"), join(folder, "expire-credentials"), { recursive: true });
    writeFileSync(join(folder, "expire-credentials", "api-key"), remover.id);
    const settings: Record<string, string> = {
      PATH: `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`,
      NOTIFY: "json",
      FLAGS: pulumiOnPath ? '""' : '"--engine embedded"',
      EXPIRE_FLAGS: pulumiOnPath ? '""' : '"--engine embedded"',
      ROTATE_FLAGS: pulumiOnPath ? '""' : '"--engine embedded"',
      GATEHOUSE_URL: fleet.env.GATEHOUSE_URL ?? "",
    };
    for (const [name, secret] of [
      ["username", fleet.env.GATEHOUSE_USERNAME],
      ["password", fleet.env.GATEHOUSE_PASSWORD],
      ["passphrase", secrets.passphrase],
    ] as const) {
      mkdirSync(join(folder, "rotate-credentials"), { recursive: true });
      writeFileSync(join(folder, "rotate-credentials", name), secret ?? "");
    }
    for (const name of readdirSync(RECIPE)) {
      const text = readFileSync(join(RECIPE, name), "utf8")
        .replaceAll(/\/(etc|usr\/local\/lib|var\/lib)\/gatehouse-drift/g, folder)
        .replaceAll(/^(\w+)=.*$/gm, (line, key) =>
          name.endsWith(".env") && key in settings ? `${key}=${settings[key]}` : line,
        )
        // The test has one program and one folder for states.
        .replaceAll(`${folder}/keys`, `${folder}/policy`)
        .replaceAll(`${folder}/key-states`, `${folder}/states`);
      writeFileSync(join(folder, name), text, { mode: 0o755 });
    }
  }

  /** Runs a command like a scheduler: in a shell with a minimal environment. */
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

  const byCron = (job: "nightly" | "hourly" = "nightly") => {
    const lines = readFileSync(join(folder, "gatehouse-drift.cron"), "utf8").trimEnd().split("\n");
    const line = lines.at(job === "hourly" ? -2 : -1) ?? "";
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
    // Simulates systemd's LoadCredential: copies only the credentials that the unit lists to a separate folder.
    const credentials = mkdtempSync(join(folder, "loaded-"));
    for (const [name = "", file = ""] of valuesOf(unit, "LoadCredential").map((value) => value.split(":"))) {
      cpSync(file, join(credentials, name));
    }
    const [command = ""] = valuesOf(unit, "ExecStart");
    return scheduled(command, { ...env, CREDENTIALS_DIRECTORY: credentials });
  };

  it("prints nothing without drift, notifies the webhook of drift, and reports the cause of a failure", {
    tags: ["long"],
  }, async () => {
    const silent = (code: number) => ({ code, stdout: "", stderr: "" });
    expect(await byCron()).toEqual(silent(0));
    expect(hook.messages).toEqual([]);

    await createKey(fleet.client, "backdoor");
    origin.write({ "README.md": "# Policy\n" });
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

  it("rotates API keys that are due, and prints nothing if no key is due", { tags: ["long"] }, async () => {
    const cron = readFileSync(join(folder, "gatehouse-rotate.cron"), "utf8").trimEnd().split("\n").at(-1);
    const [, command = ""] = /^(?:\S+\s+){5}gatehouse-drift\s+(.*)$/.exec(cron ?? "") ?? [];
    expect(await scheduled(command)).toEqual({ code: 0, stdout: "", stderr: "" });
    origin.write({
      "index.js": `${readFileSync(join(origin.root, "index.js"), "utf8")}
new (require("@gatehouse-access/provider").ApiKey)("ci", { role: "observer", validDays: 90, rotateBefore: 14 });
`,
    });
    origin.commit("A key");
    const stack = new Stack({
      program: origin.root,
      folder: join(folder, "states"),
      name: "prod",
      env: fleet.env,
      engine: pulumiOnPath ? "cli" : "embedded",
    });
    await stack.result(["up", "--yes", "--skip-preview"]);
    const ci = (await fleet.client.listApiKeys()).find(({ name }) => name.startsWith("ci-"));
    await fleet.client.deleteApiKey({ params: { key: ci?.name ?? "" } });
    expect(await scheduled(command)).toEqual({ code: 0, stdout: "", stderr: "" });
    const names = (await fleet.client.listApiKeys()).map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining([expect.stringMatching(/^ci-/)]));
    await fleet.client.deleteApiKey({ params: { key: names.find((name) => name.startsWith("ci-")) ?? "" } });
  });

  it("removes expired objects from a server that does not end access, and prints output if objects remain", {
    tags: ["long"],
  }, async () => {
    const sparse = await startSparseService(fleet.service.url);
    const settings = join(folder, "drift.env");
    const before = readFileSync(settings, "utf8");
    const state = join(folder, "states", ".pulumi", "stacks", "policy", "prod.json");
    const update = (body: { name: string; username: string }) =>
      fleet.client.updatePublicKey({
        params: { fingerprint: ana?.fingerprint ?? "" },
        body: { ...body, filter: { hostname: ".*" } },
      });
    const keys = async () => fleet.client.getPublicKeys({ query: { perPage: 100 } });
    const ana = (await keys()).find(({ name }) => name === "ana");
    try {
      writeFileSync(settings, before.replaceAll(/^GATEHOUSE_URL=.*$/gm, `GATEHOUSE_URL=${sparse.url}`));
      const checkpoint = JSON.parse(readFileSync(state, "utf8"));
      for (const { urn, outputs } of checkpoint.checkpoint.latest.resources) {
        const end = { expiresAt: "2026-01-01T00:00:00.000Z", expiryStatus: "by-run" };
        if (urn.endsWith("::ana")) Object.assign(outputs, end);
      }
      writeFileSync(state, JSON.stringify(checkpoint));

      await update({ name: "ana", username: ".*" });
      const kept = await byCron("hourly");
      expect(kept.code).toBe(2);
      expect(kept.stderr).toContain("PublicKey ana: expired");
      expect((await keys()).map(({ name }) => name)).toContain("ana");

      await update({ name: "ana", username: "^root$" });
      expect(await byCron("hourly")).toEqual({ code: 0, stdout: "", stderr: "" });
      expect((await keys()).map(({ name }) => name)).not.toContain("ana");
    } finally {
      writeFileSync(settings, before);
      await sparse.stop();
    }
  });
});

const reason = withoutSystemd && ` (${withoutSystemd})`;

describe.skipIf(reason)(`the units${reason ?? ""}`, () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "gatehouse-units-"));
    // A symbolic link to the example folder. The path of the link has no space, since the units contain the path
    // without quotes.
    const recipe = join(folder, "recipe");
    symlinkSync(RECIPE, recipe);
    for (const job of ["expire", "rotate"]) mkdirSync(join(folder, `gatehouse-${job}.service.d`));
    const units = {
      "gatehouse-drift.service": "gatehouse-drift.service",
      "gatehouse-drift.timer": "gatehouse-drift.timer",
      "gatehouse-expire.service": "gatehouse-drift.service",
      "gatehouse-expire.service.d/expire.conf": "expire.conf",
      "gatehouse-expire.timer": "gatehouse-expire.timer",
      "gatehouse-rotate.service": "gatehouse-drift.service",
      "gatehouse-rotate.service.d/rotate.conf": "rotate.conf",
      "gatehouse-rotate.timer": "gatehouse-rotate.timer",
    };
    for (const [name, source] of Object.entries(units)) {
      const text = readFileSync(join(RECIPE, source), "utf8").replaceAll(
        /\/usr\/local\/lib\/gatehouse-drift/g,
        recipe,
      );
      writeFileSync(join(folder, name), text);
    }
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("are valid and hardened", () => {
    const service = join(folder, "gatehouse-drift.service");
    expectUnderstood(service, join(folder, "gatehouse-drift.timer"));
    expectHardened(service, 20);
    for (const job of ["expire", "rotate"]) {
      const other = join(folder, `gatehouse-${job}.service`);
      expectUnderstood(other, join(folder, `gatehouse-${job}.timer`));
      expectHardened(other, 20);
    }
  });
});
