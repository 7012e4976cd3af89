import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { Check, CheckState, Diagnosis } from "../../provider/cli/doctorReport.ts";
import { makeCertificate, openssl } from "../support/certificate.ts";
import { testFolder } from "../support/folder.ts";
import { gatehouse, spawnGatehouse } from "../support/gatehouse.ts";
import { freePort, listening } from "../support/listening.ts";
import { type PolicyProgram, testProgram } from "../support/policyProgram.ts";
import { startRecordedService } from "../support/recordedService.ts";
import { schemaFaults } from "../support/schemas.ts";
import { testService } from "../support/service.ts";
import { sharedFleet } from "../support/sharedFleet.ts";

const RECORDED_TENANT = "a7d30b2c-5fdf-4149-adc1-afc58e37821b";
const UNKNOWN_TENANT = "11111111-2222-4333-8444-555555555555";
/** A value for wrong credentials and passwords in addresses. No output contains this value. */
const SECRET = "swordfish";

const fleet = sharedFleet(["bob"]);
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
});

type Env = Record<string, string>;

/** Runs the command with `--json`. Checks the rules of every report: schema, exit code, remedies, no secret. */
async function doctor(env: Env, folder = testFolder(), ...flags: string[]) {
  const { code, stdout, stderr } = await gatehouse(["doctor", folder, "--json", ...flags], env);
  const report = JSON.parse(stdout) as Diagnosis;
  expect(schemaFaults("doctor", report)).toEqual([]);
  expect(code).toBe(report.checks.some(({ state }) => state === "failed") ? 2 : 0);
  expect(report.ok).toBe(code === 0);
  for (const { state, found, remedy } of report.checks) {
    expect(found).toMatch(/^[^\n]+$/);
    if (state === "warning" || state === "failed") expect(remedy).toMatch(/^[A-Z][^\n]*[.?!]$/);
  }
  for (const secret of [SECRET, fleet.env.GATEHOUSE_PASSWORD]) expect(stdout + stderr).not.toContain(secret);
  return Object.fromEntries(report.checks.map((check) => [check.name, check]));
}

/** Returns a folder of programs for the PATH. Each program prints its text. */
function programs(texts: Record<string, string>): string {
  // The SDK of Pulumi finds a CLI only in folders of this name.
  const folder = join(testFolder(), "bin");
  mkdirSync(folder);
  for (const [name, text] of Object.entries(texts)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(folder, name), 0o755);
  }
  return folder;
}

/** Returns a folder with a Pulumi.yaml. */
function projectWith(text: string): string {
  const folder = testFolder();
  writeFileSync(join(folder, "Pulumi.yaml"), text);
  return folder;
}

const embedded = (program: PolicyProgram): Env => ({
  GATEHOUSE_ENGINE: "embedded",
  PULUMI_BACKEND_URL: `file://${program.states}`,
  PULUMI_CONFIG_PASSPHRASE: "correct horse",
});

async function answering(status: number, body: string, headers: Env = {}): Promise<Env> {
  const server = await listening(
    createServer((_request, response) => response.writeHead(status, headers).end(body)),
  );
  onTestFinished(() => server.stop());
  return { ...fleet.env, GATEHOUSE_URL: server.url };
}

async function recorded(...labels: string[]): Promise<Env> {
  const service = await startRecordedService(["login", "token of the namespace", ...labels]);
  onTestFinished(() => service.stop());
  return {
    GATEHOUSE_URL: service.url,
    GATEHOUSE_USERNAME: "admin",
    GATEHOUSE_PASSWORD: SECRET,
    GATEHOUSE_TENANT: RECORDED_TENANT,
  };
}

/** Sets the clock of this machine `seconds` ahead. */
function clockAhead(seconds: number): Env {
  vi.useFakeTimers({ now: Date.now() + seconds * 1000, toFake: ["Date"] });
  return fleet.env;
}

const withCredential = (credential: Env): Env => ({
  GATEHOUSE_URL: fleet.env.GATEHOUSE_URL ?? "",
  ...credential,
});

/** Stores a lock of another machine for a stack. */
function locked(program: PolicyProgram): Env {
  const root = join(program.states, ".pulumi");
  for (const folder of ["stacks", "locks/organization"])
    mkdirSync(join(root, folder, "commonjs-program/prod"), { recursive: true });
  rmSync(join(root, "stacks/commonjs-program/prod"), { recursive: true });
  writeFileSync(
    join(root, "stacks/commonjs-program/prod.json"),
    JSON.stringify({ version: 3, checkpoint: { latest: {} } }),
  );
  const lock = { pid: 1, username: "ana", hostname: "elsewhere", timestamp: "2026-11-28T00:00:00Z" };
  writeFileSync(join(root, "locks/organization/commonjs-program/prod/one.json"), JSON.stringify(lock));
  return embedded(program);
}

/** The Pulumi CLI is a script with this text. */
function withPulumi(text: string): readonly [Env, string] {
  const program = testProgram();
  const PATH = `${programs({ pulumi: text })}:${process.env.PATH}`;
  return [{ ...embedded(program), GATEHOUSE_ENGINE: "cli", PATH, PULUMI_STACK: "prod" }, program.folder];
}

type Setup = () => Env | readonly [Env, string] | Promise<Env | readonly [Env, string]>;

/** Settings with which the test program has an encrypted configuration of the stack `prod`. */
async function encrypted(change: Env): Promise<readonly [Env, string]> {
  const program = testProgram();
  await program.configure("prod", { "gatehouse:url": "http://a" }, "correct horse");
  return [{ ...embedded(program), PULUMI_STACK: "prod", ...change }, program.folder];
}

/** Settings for a run of the test program. */
const inProgram = (env: Env) => [env, testProgram().folder] as const;
const onPath = (texts: Record<string, string> = {}) => ({ PATH: programs(texts) });
const ofFleet = (change: Env) => ({ ...fleet.env, ...change });

/** A problem: a part of the remedy, and the settings. */
type Problem = readonly [remedy: string, setup: Setup];

/** The problems of each check, by the state and a part of the found facts. */
const PROBLEMS: Readonly<Record<string, Readonly<Record<`${CheckState}: ${string}`, Problem>>>> = {
  pulumi: {
    "failed: not on the PATH": ["GATEHOUSE_ENGINE=embedded", () => inProgram(onPath())],
    "warning: runs use the Pulumi CLI": ["To run Pulumi programs", () => onPath()],
    "warning: runs use the embedded engine": [
      "For production",
      () => ({ ...onPath(), GATEHOUSE_ENGINE: "embedded" }),
    ],
    'failed: cannot be "other"': ["Install", () => ({ GATEHOUSE_ENGINE: "other" })],
  },
  terraform: {
    "warning: 1.4.9": ["1.5 or newer", () => onPath({ terraform: "echo Terraform v1.4.9" })],
    "warning: unknown version": ["1.5 or newer", () => onPath({ terraform: "exit 1" })],
  },
  tofu: { "not checked: not on the PATH": ["configurations of OpenTofu", () => onPath()] },
  git: { "not checked: not on the PATH": ["gatehouse review --base", () => onPath()] },
  ssh: { "not checked: not on the PATH": ["ssh-config", () => onPath()] },
  project: {
    "failed: is not valid YAML": ["Correct Pulumi.yaml", () => [{}, projectWith("name: [")]],
    "failed: (python): programs in languages other than Node.js": [
      "another engine",
      () => [{ GATEHOUSE_ENGINE: "embedded" }, projectWith("name: p\nruntime: python")],
    ],
  },
  package: {
    "warning: version 0.0.9, this command has": [
      "Install @gatehouse-access/provider@",
      () => {
        const folder = projectWith("name: p\nruntime: nodejs");
        const installed = join(folder, "node_modules/@gatehouse-access/provider");
        mkdirSync(installed, { recursive: true });
        writeFileSync(join(installed, "package.json"), '{ "version": "0.0.9" }');
        return [{}, folder];
      },
    ],
    "warning: version none": [
      "Run gatehouse pulumi install",
      () => [{ PULUMI_HOME: testFolder() }, projectWith("name: p\nruntime: python")],
    ],
  },
  backend: {
    "failed: No state backend is configured": [
      "Set PULUMI_BACKEND_URL",
      () => inProgram({ PULUMI_HOME: testFolder() }),
    ],
    "failed: does not exist": [
      "Create the folder",
      () => inProgram({ PULUMI_BACKEND_URL: "file:///no/such/folder" }),
    ],
    "failed: a part of the path is a file": [
      "Correct the path",
      () => inProgram({ PULUMI_BACKEND_URL: `file://${import.meta.filename}` }),
    ],
    "failed: postgres://": [
      "another engine",
      () =>
        inProgram({ GATEHOUSE_ENGINE: "embedded", PULUMI_BACKEND_URL: `postgres://me:${SECRET}@db/state` }),
    ],
    "warning: one.json of ana@elsewhere": [
      "delete the file",
      () => {
        const program = testProgram();
        return [locked(program), program.folder];
      },
    ],
  },
  stack: {
    "failed: passphrase of the stack's secrets is missing": [
      "Set PULUMI_CONFIG_PASSPHRASE",
      async () => {
        const [{ PULUMI_CONFIG_PASSPHRASE: _, ...env }, folder] = await encrypted({});
        return [env, folder];
      },
    ],
    "failed: The passphrase is wrong": [
      "Correct the stack, its passphrase",
      () => encrypted({ PULUMI_CONFIG_PASSPHRASE: SECRET }),
    ],
    "failed: Minimum version requirement failed": ["the Pulumi CLI", () => withPulumi("echo v2.0.0")],
    "failed: could not open the stack. error: broken": [
      "the Pulumi CLI",
      () => withPulumi('case "$1" in version) echo v3.270.0;; *) echo "error: broken" >&2; exit 255;; esac'),
    ],
  },
  address: {
    "failed: GATEHOUSE_URL is not set": ["https://access.example.org", () => ({})],
    "failed: GATEHOUSE_URL is not the URL of a service": [
      "Set it to a URL",
      () => ({ GATEHOUSE_URL: "ftp://host" }),
    ],
    "failed: must not contain a user name": [
      "Pass them",
      () => ({ GATEHOUSE_URL: `http://me:${SECRET}@host` }),
    ],
    "failed: GATEHOUSE_URL_FILE: Cannot read": [
      "Give the path of a file",
      () => ({ GATEHOUSE_URL_FILE: testFolder() }),
    ],
    "failed: GATEHOUSE_CA_FILE: Cannot read": [
      "Correct the path",
      () => ofFleet({ GATEHOUSE_CA_FILE: "/no/file" }),
    ],
    "failed: are not in PEM format": [
      "Set GATEHOUSE_URL",
      () => ofFleet({ GATEHOUSE_CA_FILE: import.meta.filename }),
    ],
    "failed: connection refused": [
      "Check that the service is running",
      async () => ofFleet({ GATEHOUSE_URL: `http://127.0.0.1:${await freePort()}` }),
    ],
    "failed: The server failed (503)": ["Set GATEHOUSE_URL", () => answering(503, "")],
    "warning: /info: the response is not JSON": ["Check the URL", () => answering(200, "<html>")],
    "warning: is not encrypted": [
      "Use an https:// address",
      () => ofFleet({ GATEHOUSE_URL: fleet.service.url.replace("127.0.0.1", "0.0.0.0") }),
    ],
  },
  credential: {
    "failed: no credential is set": ["Set GATEHOUSE_API_KEY", () => withCredential({})],
    "failed: API key is not valid": [
      "Check GATEHOUSE_API_KEY",
      () => withCredential({ GATEHOUSE_API_KEY: SECRET }),
    ],
    "failed: token is not valid": [
      "Check GATEHOUSE_TOKEN",
      () => withCredential({ GATEHOUSE_TOKEN: SECRET }),
    ],
    "failed: Wrong user name or password": [
      "Check GATEHOUSE_USERNAME and GATEHOUSE_PASSWORD",
      () => withCredential({ GATEHOUSE_USERNAME: "unknown", GATEHOUSE_PASSWORD: SECRET }),
    ],
    "failed: GATEHOUSE_API_KEY and GATEHOUSE_TOKEN are set": [
      "Set only one",
      () => withCredential({ GATEHOUSE_API_KEY: SECRET, GATEHOUSE_TOKEN: SECRET }),
    ],
    "failed: GATEHOUSE_API_KEY_FILE: Cannot read": [
      "Give the path of a file",
      () => withCredential({ GATEHOUSE_API_KEY_FILE: testFolder() }),
    ],
    "failed: GATEHOUSE_TENANT must be": [
      "Run gatehouse namespace list",
      () => ofFleet({ GATEHOUSE_TENANT: "prod" }),
    ],
    "failed: no access to the namespace": [
      "Set GATEHOUSE_TENANT",
      () => ofFleet({ GATEHOUSE_TENANT: UNKNOWN_TENANT }),
    ],
    "failed: does not come from the service": [
      "Check the URL",
      () => answering(404, "<html>", { "content-type": "text/html" }),
    ],
    "warning: not a member of any namespace": [
      "Create a namespace",
      () => withCredential({ GATEHOUSE_USERNAME: "bob", GATEHOUSE_PASSWORD: "correct-horse" }),
    ],
  },
  clock: {
    "warning: s ahead of the service": ["NTP", () => clockAhead(100)],
    "failed: s ahead of the service": ["NTP", () => clockAhead(1_000)],
    "failed: s behind the service": ["NTP", () => clockAhead(-1_000)],
  },
  server: {
    "warning: version 0.31.0": [
      "upgrade Gatehouse",
      () =>
        recorded("info of a newer version", "get namespace with its members", "firewall rules do not exist"),
    ],
  },
  "access mode": {
    "warning: a mode that this version does not know": [
      "Upgrade Gatehouse",
      () => recorded("info", "get namespace in a mode of a later version", "firewall rules do not exist"),
    ],
  },
};

describe.each(Object.entries(PROBLEMS))("the check %s", (name, problems) => {
  it.each(Object.entries(problems))("reports %s", async (problem, [remedy, setup]) => {
    const given = await setup();
    const checks = await (Array.isArray(given) ? doctor(...(given as [Env, string])) : doctor(given as Env));
    const [state = "", ...found] = problem.split(": ");
    expect(checks[name]).toMatchObject({
      state,
      found: expect.stringContaining(found.join(": ")),
      remedy: expect.stringContaining(remedy),
    });
  });
});

it("has a test of a problem for every check except the first one", async () => {
  const [first, ...others] = Object.keys(await doctor({}));
  expect(first).toBe("gatehouse");
  expect(others).toEqual(Object.keys(PROBLEMS));
});

const statesOf = (checks: Record<string, Check>) =>
  Object.fromEntries(Object.values(checks).map(({ name, state }) => [name, state]));

describe("without a problem", () => {
  /** Creates a stack whose encrypted configuration has all settings of the service. */
  async function configured() {
    const program = testProgram();
    const settings = ["url", "username", "password"].map((name) => [
      `gatehouse:${name}`,
      fleet.env[`GATEHOUSE_${name.toUpperCase()}`] ?? "",
    ]);
    await program.configure("prod", Object.fromEntries(settings), "correct horse");
    const path = programs({
      pulumi: "echo v3.270.0",
      terraform: "echo Terraform v1.11.4",
      tofu: "echo OpenTofu v1.10.0",
      git: "echo git version 2.39.5",
      ssh: "echo OpenSSH_9.2p1 >&2",
    });
    return { program, env: { ...embedded(program), PATH: path } };
  }

  it("every check is ok, with the settings of the stack", async () => {
    const { program, env } = await configured();
    const checks = await doctor(env, program.folder, "--stack", "prod");
    expect(new Set(Object.values(statesOf(checks)))).toEqual(new Set(["ok"]));
    const found = Object.fromEntries(Object.values(checks).map((check) => [check.name, check.found]));
    expect(found).toMatchObject({
      gatehouse: expect.stringMatching(/^\d+\.\d+\.\d+, Node\.js \d+\.\d+\.\d+$/),
      pulumi: "3.270.0; runs use the embedded engine",
      terraform: "1.11.4",
      tofu: "1.10.0",
      git: "2.39.5",
      ssh: "9.2",
      project: "commonjs-program, runtime nodejs",
      backend: `${program.states} (PULUMI_BACKEND_URL), 0 stacks`,
      stack: "prod, 3 configuration values",
      address: fleet.env.GATEHOUSE_URL,
      credential: expect.stringMatching(/^user with the role owner, namespace \S+ \([0-9a-f-]{36}\)$/),
      clock: "at most 30 s from the time of the service",
      server: "gatehouse-server, API of ShellHub 0.19.0",
      "access mode": "public keys and firewall rules",
    });
  });

  it("the installed command prints one line for each check, and exits 0", async () => {
    const { program, env } = await configured();
    const PATH = `${env.PATH}:${process.env.PATH}`;
    const { code, stdout } = await spawnGatehouse(["doctor", program.folder, "--stack", "prod"], {
      ...env,
      PATH,
    });
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split("\n");
    expect(lines.filter((line) => !/^ok {2}\S/.test(line) && !/^ +- /.test(line))).toEqual([]);
    expect(lines.filter((line) => line.startsWith("ok"))).toHaveLength(15);
  });
});

it("prints the remedy after each problem, and the differences of the server", async () => {
  const env = await recorded("info", "get namespace with its members", "firewall rules do not exist");
  const { code, stdout } = await gatehouse(["doctor", testFolder()], { ...env, PATH: programs({}) });
  expect(code).toBe(0);
  const lines = stdout.split("\n");
  expect(lines).toContainEqual(
    expect.stringMatching(/^not checked {2}git +not on the PATH\. Install it for gate/),
  );
  expect(lines).toContainEqual(expect.stringMatching(/^ok +access mode +identity: access policies$/));
  const server = lines.findIndex((line) =>
    /^ok +server +ShellHub 0\.27\.0-rc\.6, community; requests of version 0\.27$/.test(line),
  );
  expect(lines[server + 1]).toMatch(/^ +- Available: .*access policies, service accounts, install keys\.$/);
  expect(lines[server + 2]).toMatch(
    /^ +- Not available: firewall rules\. Supported by: gatehouse-server, Shell/,
  );
  expect(stdout).toContain("- Tags are objects.");
});

it("reports the kind and the expiry of a token, and warns on its last day", async () => {
  const token = await fleet.client.sessionToken();
  const env = withCredential({ GATEHOUSE_TOKEN: token });
  const { credential } = await doctor(env);
  expect(credential).toMatchObject({
    state: "ok",
    found: expect.stringMatching(/^token of a user with the role owner, .* expires at (\S+)$/),
  });
  const end = /\S+$/.exec(credential?.found ?? "")?.[0] ?? "";
  vi.useFakeTimers({ now: Date.parse(end) - 3_600_000, toFake: ["Date"] });
  expect((await doctor(env)).credential).toMatchObject({
    state: "warning",
    remedy: "Set GATEHOUSE_TOKEN to a new token.",
  });
});

it("reports an API key without its role", async () => {
  const { id } = await fleet.client.createApiKey({
    body: { name: "doctor", role: "observer", expiresAt: 30 },
  });
  const checks = await doctor(withCredential({ GATEHOUSE_API_KEY: id }));
  expect(checks.credential).toMatchObject({
    state: "ok",
    found: expect.stringMatching(/^API key, namespace /),
  });
});

it("does not check the requirements of a missing project, or of a service without an answer", async () => {
  const checks = await doctor({ ...fleet.env, GATEHOUSE_URL: `http://127.0.0.1:${await freePort()}` });
  const skipped = ["project", "package", "backend", "stack", "credential", "clock", "server", "access mode"];
  expect(skipped.filter((name) => checks[name]?.state !== "not checked")).toEqual([]);
});

it("reads the version of the server even if the credential is wrong", async () => {
  const env = await recorded("info");
  const checks = await doctor({
    ...env,
    GATEHOUSE_TENANT: "",
    GATEHOUSE_USERNAME: "",
    GATEHOUSE_PASSWORD: "",
  });
  expect(checks.credential?.state).toBe("failed");
  expect(checks.server).toMatchObject({ state: "ok", found: "0.27.0-rc.6; requests of version 0.27" });
});

describe.skipIf(!openssl)("the certificate of the service", () => {
  it("must be trusted, by GATEHOUSE_CA_FILE for a private authority", { tags: ["long"] }, async () => {
    const { cert, key } = makeCertificate(testFolder(), "service");
    const service = await testService({
      env: { GATEHOUSE_TLS_CERT_FILE: cert, GATEHOUSE_TLS_KEY_FILE: key },
    });
    const env = { GATEHOUSE_URL: service.url };
    expect((await doctor(env)).address).toMatchObject({
      state: "failed",
      found: expect.stringContaining("is not trusted"),
      remedy: expect.stringContaining("GATEHOUSE_CA_FILE"),
    });
    expect((await doctor({ ...env, GATEHOUSE_CA_FILE: cert })).address).toMatchObject({
      state: "ok",
      found: `${service.url}, TLS verified with GATEHOUSE_CA_FILE`,
    });
    vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", "0");
    expect((await doctor(env)).address).toMatchObject({
      state: "warning",
      remedy: "Unset NODE_TLS_REJECT_UNAUTHORIZED.",
    });
  });
});

// The test waits for the limit of two checks, which is 10 seconds each.
it("ends each check at its limit", { tags: ["long"] }, async () => {
  const server = await listening(createServer(() => {}));
  onTestFinished(() => server.stop());
  const checks = await doctor({
    GATEHOUSE_URL: server.url,
    PATH: `${programs({ git: "sleep 60 & wait" })}:${process.env.PATH}`,
  });
  expect([checks.git, checks.address].map((check) => check?.state)).not.toContain("ok");
  expect(checks.address).toMatchObject({ state: "failed" });
});

it("the schema rejects another state", () => {
  const check = { name: "git", state: "broken", found: "x" };
  expect(schemaFaults("doctor", { version: 1, ok: true, checks: [check] })).toEqual([
    "/checks/0/state must be equal to one of the allowed values",
  ]);
});
