import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import fc from "fast-check";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Plan } from "../../provider/engine/index.ts";
import { cidr, login } from "../../provider/helpers/patterns.ts";
import { sshKeyLine } from "../provider/support/programs.ts";
import { agentCall, type Fleet, startFleet } from "../support/fleet.ts";
import { changesOf, gatehouse, pulumiOnPath, spawnGatehouse } from "../support/gatehouse.ts";
import { requestsDuring } from "../support/requests.ts";
import { SEED } from "../support/seed.ts";

const MODULES = fileURLToPath(new URL("../../node_modules", import.meta.url));

/** The number of objects of each kind in a namespace. */
interface Sizes {
  readonly keys: number;
  readonly rules: number;
  readonly members: number;
  readonly devices: number;
  readonly tagged: number;
}

const names = fc.oneof(
  fc.constantFrom(
    "ana",
    "it's",
    '"',
    "\\",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a program must not interpret it as a reference
    "${ana}",
    "`",
    "two\nlines",
    "🦊",
    "\u202eleft",
    "a::b",
    "*/",
    "__proto__",
  ),
  fc.constantFrom("constructor", "7", "-", "x".repeat(200)),
);
const usernames = fc.constantFrom(".*", "^root$", login("ana", "root"), login("a.b"), "^(a|b)", "[a-z]+\\$");
const sources = fc.constantFrom(".*", cidr("10.0.0.0/8"), cidr("192.0.2.7", "10.1.0.0/16"), "^10\\.");
const filters = fc.constantFrom(
  { hostname: ".*" },
  { hostname: "^web-[0-9]+$" },
  { tags: ["prod"] },
  { tags: ["edge", "prod"] },
);

/** Fills the first user's namespace with random objects, like those that users create manually. */
async function fill({ client, tenant, service }: Fleet, sizes: Sizes, seed: number): Promise<void> {
  const some = <T>(arbitrary: fc.Arbitrary<T>, numRuns: number) => fc.sample(arbitrary, { seed, numRuns });
  const inTurn = async (count: number, work: (index: number) => Promise<unknown>) => {
    let next = 0;
    const worker = async () => {
      while (next < count) await work(next++);
    };
    await Promise.all(Array.from({ length: 16 }, worker));
  };
  const mac = (index: number) =>
    `0a:00:00:00:${[index >> 8, index & 255].map((byte) => byte.toString(16).padStart(2, "0")).join(":")}`;
  await inTurn(sizes.devices, async (index) => {
    const { uid } = await agentCall(client, `web-${index}`, mac(index), tenant);
    if (index >= sizes.tagged) return;
    await client.acceptDevice({ params: { uid } });
    await client.updateDeviceTags({
      params: { uid },
      body: { tags: index % 2 ? ["prod"] : ["edge", "prod"] },
    });
  });
  const keys = some(fc.tuple(names, usernames, filters), sizes.keys);
  await inTurn(sizes.keys, async (index) => {
    const [name = "", username = "", filter = {}] = keys[index] ?? [];
    const data = Buffer.from(sshKeyLine("with a comment")).toString("base64");
    await client.createPublicKey({ body: { name, data, username, filter } });
  });
  const rules = some(
    fc.tuple(fc.boolean(), fc.nat(50), sources, usernames, filters, fc.boolean()),
    sizes.rules,
  );
  await inTurn(sizes.rules, async (index) => {
    const [allow, priority = 0, sourceIp = "", username = "", filter = {}, active = true] =
      rules[index] ?? [];
    const action = allow ? "allow" : "deny";
    await client.createFirewallRule({ body: { action, priority, sourceIp, username, filter, active } });
  });
  for (let index = 0; index < sizes.members; index += 1) {
    const username = `member-${index}`;
    await service.createUser({ username, password: "correct-horse" });
    const body = { email: `${username}@example.com`, role: index % 2 ? "observer" : "operator" } as const;
    await client.inviteMember({ params: { tenant }, body });
  }
  await client.createApiKey({ body: { name: "pipeline", expiresAt: 30, role: "observer" } });
}

// Long tests import many objects. test/terraform/imported.test.ts imports an estate in short runs.
describe("a program for an existing namespace", { timeout: 300_000 }, () => {
  let fleet: Fleet;
  let folder: string;
  let settings: Record<string, string>;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "gatehouse-import-"));
    symlinkSync(MODULES, join(folder, "node_modules"));
    return () => rmSync(folder, { recursive: true, force: true });
  });
  afterEach(() => fleet.stop());

  async function start(sizes: Sizes, seed = SEED): Promise<void> {
    fleet = await startFleet();
    await fill(fleet, sizes, seed);
    const states = mkdtempSync(join(folder, "states-"));
    settings = {
      ...fleet.env,
      PULUMI_BACKEND_URL: `file://${states}`,
      PULUMI_CONFIG_PASSPHRASE: "correct horse battery staple",
    };
  }
  const outFolder = () => join(mkdtempSync(join(folder, "out-")), "policy");
  const run = (args: readonly string[], env = settings) => gatehouse(args, env);
  const preview = async (out: string): Promise<Plan> => {
    const { code, stdout, stderr } = await run(["preview", out, "--engine", "embedded", "--json"]);
    expect([code, stderr]).toEqual([0, expect.any(String)]);
    return JSON.parse(stdout) as Plan;
  };
  const isWrite = (request: string) => !/^(GET|POST \/api\/(login|auth))/.test(request);

  const SMALL = { keys: 16, rules: 14, members: 1, devices: 4, tagged: 3 };

  it("is imported without a write request, and plans exactly the changes that users make to it", {
    tags: ["long"],
  }, async () => {
    await start(SMALL);
    const out = outFolder();
    let stdout = "";
    const requests = await requestsDuring(fleet.service, async () => {
      const imported = await run(["import", "--tenant", "admin", "--out", out, "--stack", "prod"]);
      expect([imported.code, imported.stderr]).toEqual([0, expect.stringContaining("Reading admin")]);
      stdout = imported.stdout;
    });
    expect(requests.filter(isWrite)).toEqual([]);
    expect(stdout).toContain(
      "36 resources: 1 Namespace, 1 Member, 16 PublicKey, 14 FirewallRule, 1 ApiKey, 3 DeviceTags",
    );
    expect(stdout).toContain("Its preview is empty");
    expect(readdirSync(join(out, "data"))).toEqual(["keys.json", "rules.json"]);

    const rows = JSON.parse(readFileSync(join(out, "data", "keys.json"), "utf8")) as Record<string, object>;
    const [name = "", ...others] = Object.keys(rows);
    const username = "^another-user$";
    const changed = { ...rows, [name]: { ...rows[name], logins: undefined, username } };
    writeFileSync(join(out, "data", "keys.json"), JSON.stringify(changed));
    const plan = await preview(out);
    expect(changesOf(plan)).toEqual([`update ${name} username`]);
    expect(plan.summary.same).toBe(others.length + 36 - 16 + 1);

    // A stack named prod exists, and the imported program declares none of its resources. An up would delete them all.
    const other = join(mkdtempSync(join(folder, "out-")), "policy");
    const taken = await run(["import", "--out", other, "--stack", "prod", "--only", "Member"]);
    expect([taken.code, taken.stderr]).toEqual([1, expect.stringContaining("already has resources")]);

    const second = await run(["import", "--tenant", "admin", "--out", out]);
    expect([second.code, second.stderr]).toEqual([
      1,
      expect.stringContaining("Pulumi.yaml already exists. Choose a folder without a program for --out."),
    ]);
  });

  it("needs no backend setting for a state in a file, and names files after the last part of the stack's name", {
    tags: ["long"],
  }, async () => {
    await start({ keys: 1, rules: 0, members: 0, devices: 1, tagged: 1 });
    const { PULUMI_BACKEND_URL: _states, ...others } = settings;
    const none = { ...others, PULUMI_HOME: join(folder, "no-home") };
    const whole = ["--stack", "acme/fleet/prod", "--only", "PublicKey"];
    const out = outFolder();
    const imported = await run(["import", "--out", out, "--state", "file", ...whole], none);
    expect([imported.code, imported.stderr]).toEqual([0, expect.stringContaining("Reading admin")]);
    expect(imported.stdout).toContain("pulumi stack init acme/fleet/prod");
    expect(imported.stdout).toContain("pulumi stack import --file prod.state.json");
    expect(readdirSync(out)).toEqual(expect.arrayContaining(["Pulumi.prod.yaml", "prod.state.json"]));
    expect(readFileSync(join(out, "Pulumi.yaml"), "utf8")).toContain("name: fleet");

    // A file backend has only the organization "organization", as in the Pulumi CLI.
    for (const [stack, why] of [
      ["organization/fleet/prod", "The project fleet has no stack prod"],
      ["acme/prod", "a file backend has no organizations. Use prod"],
      ["organization/other/prod", "belongs to the project other, but Pulumi.yaml belongs to fleet"],
      ["../prod", '"../prod" is not a valid stack name'],
    ] as const) {
      const previewed = await run(["preview", out, "--engine", "embedded", "--stack", stack]);
      expect([previewed.code, previewed.stderr]).toEqual([1, expect.stringContaining(why)]);
    }
    for (const flags of [
      ["--stack", "a/b/c/d"],
      ["--stack", "acme/fleet/prod", "--project", "other"],
    ]) {
      const refused = await run(["import", "--out", outFolder(), ...flags]);
      expect([refused.code, refused.stderr]).toEqual([
        1,
        expect.stringMatching(/^error: .*--?stack|is not a valid stack name/),
      ]);
    }
  });

  it("adopts existing objects without a state, and writes no secret to a state for the Pulumi CLI", {
    tags: ["long"],
  }, async () => {
    await start(SMALL);
    const adopting = outFolder();
    const imported = await run(["import", "--out", adopting, "--adopt", "--stack", "prod"]);
    expect([imported.code, imported.stderr]).toEqual([
      0,
      expect.stringContaining("ApiKey pipeline is omitted"),
    ]);
    const up = () =>
      requestsDuring(fleet.service, async () => {
        const command = ["up", adopting, "--engine", "embedded", "--yes", "--stack", "prod"];
        const { code, stdout, stderr } = await run(command);
        expect([code, stderr], stdout).toEqual([0, ""]);
      });
    // The stack claims the objects that it adopts, and writes nothing else.
    const claims = (await up()).filter(isWrite);
    expect(claims).not.toEqual([]);
    expect(
      claims.filter((request) => !/^PUT \/api\/namespaces\/[^/]+\/declarations\//.test(request)),
    ).toEqual([]);
    expect((await up()).filter(isWrite)).toEqual([]);

    const filed = outFolder();
    const only = ["--stack", "lab", "--only", "ApiKey", "Member"];
    const file = await run(["import", "--out", filed, "--state", "file", ...only]);
    expect([file.code, file.stdout]).toEqual([
      0,
      expect.stringContaining("pulumi stack import --file lab.state.json"),
    ]);
    expect(readFileSync(join(filed, "Pulumi.lab.yaml"), "utf8")).not.toContain("encryptionsalt");
    const { deployment } = JSON.parse(readFileSync(join(filed, "lab.state.json"), "utf8"));
    const key = deployment.resources.find(({ type }: { type: string }) => type.endsWith(":ApiKey"));
    expect(key.outputs.key).toBe("");
    expect(JSON.stringify(deployment)).not.toContain("ciphertext");
  });

  it.runIf(pulumiOnPath)(
    `continues with the Pulumi CLI, from the stack and from a file${pulumiOnPath ? "" : " (skipped: there is no pulumi on the PATH)"}`,
    { tags: ["long"] },
    async () => {
      await start(SMALL);
      const [direct, filed] = [outFolder(), outFolder()];
      for (const [out, stack, state] of [
        [direct, "prod", "stack"],
        [filed, "lab", "file"],
      ] as const) {
        const imported = await run(["import", "--out", out, "--stack", stack, "--state", state]);
        expect([imported.code, imported.stderr]).toEqual([0, expect.stringContaining("Reading admin")]);
      }
      const pulumi = (...args: string[]) =>
        promisify(execFile)("pulumi", args, { cwd: filed, env: { ...process.env, ...settings } });
      await pulumi("stack", "init", "lab");
      await pulumi("stack", "import", "--file", "lab.state.json");
      for (const [out, stack] of [
        [direct, "prod"],
        [filed, "lab"],
      ] as const) {
        const preview = await spawnGatehouse(["preview", out, "--stack", stack, "--json"], settings);
        expect([preview.code, preview.stderr]).toEqual([0, expect.any(String)]);
        expect((JSON.parse(preview.stdout) as Plan).summary).toMatchObject({
          same: 37,
          create: 0,
          update: 0,
        });
      }
    },
  );

  it.each([1, 2, 3])("has an empty preview for any namespace (%i)", { tags: ["long"] }, async (round) => {
    const sizes = { keys: 40, rules: 30, members: 3, devices: 30, tagged: 20 };
    await start(sizes, SEED + round);
    const out = outFolder();
    const imported = await run(["import", "--out", out]);
    expect([imported.code, imported.stdout]).toEqual([0, expect.stringContaining("Its preview is empty")]);
  });

  it("is imported with at most 80 requests", { tags: ["long"] }, async () => {
    await start({ keys: 300, rules: 50, members: 20, devices: 2_000, tagged: 200 });
    const out = outFolder();
    const requests = await requestsDuring(fleet.service, async () => {
      const imported = await run(["import", "--out", out]);
      expect([imported.code, imported.stdout]).toEqual([0, expect.stringContaining("Its preview is empty")]);
    });
    expect(requests.filter(isWrite)).toEqual([]);
    // The import reads the namespace twice: to write the program, and to compare the program with the live objects.
    expect(requests.length).toBeLessThanOrEqual(80);
  });
});
