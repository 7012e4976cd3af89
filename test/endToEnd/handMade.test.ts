import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { DriftReport } from "../../provider/drift/driftReport.ts";
import { type Client, createClient, passwordCredential } from "../../sdk/index.ts";
import { changeKey, createKey, deleteKey, memberId } from "../support/fleet.ts";
import type { Stack } from "../support/gatehouse.ts";
import { firewallRule, type Policy, policyEnv, publicKey } from "../support/policy.ts";
import { sharedProgram } from "../support/policyProgram.ts";
import { schemaFaults } from "../support/schemas.ts";
import { sharedFleet } from "../support/sharedFleet.ts";
import { startSparseService } from "../support/sparseService.ts";

const policy: Policy = {
  ana: publicKey("ana"),
  bob: publicKey("bob", "^bob$", { tags: ["web"] }),
  guests: firewallRule("deny", 10, { sourceIp: "^203\\." }),
  carla: { type: "Member", args: { email: "carla@example.com", role: "operator" } },
  dave: { type: "Member", args: { email: "dave@example.com", role: "administrator" } },
  tags: { type: "DeviceTags", args: { device: "web-01", tags: ["web"] } },
};
const POLICY = policyEnv(policy);
/** The kinds of the unmanaged objects. */
const UNMANAGED = ["DeviceTagAttachment", "FirewallRule", "PublicKey"];

/** Returns the lines of a text that contain a word. */
const linesWith = (text: string, word: string) => text.split("\n").filter((line) => line.includes(word));

// Long tests run several commands on the objects of the first test.
describe("manual changes", { timeout: 120_000 }, () => {
  const fleet = sharedFleet(["carla", "dave"]);
  const program = sharedProgram();
  let stack: Stack;
  let dave: Client;
  let carla: Client;
  let edge: string;

  beforeAll(async () => {
    await fleet.enroll("web-01");
    edge = await fleet.enroll("edge-01");
    stack = stackOf(fleet.env);
    await stack.apply(policy);
    [dave, carla] = ["dave", "carla"].map((username) =>
      createClient({
        url: fleet.service.url,
        credential: passwordCredential({ username, password: "correct-horse" }),
      }).forTenant(fleet.tenant),
    ) as [Client, Client];
    await changeManually();
  });
  afterAll(() => Promise.all([dave?.close(), carla?.close()]));

  /** Makes six changes as three different users. */
  async function changeManually(): Promise<void> {
    await createKey(dave, "backdoor");
    const { args } = firewallRule("allow", 999, { active: true, sourceIp: "^203\\.0\\.113\\.7$" });
    await dave.createFirewallRule({ body: args as never });
    await carla.createDeviceTag({ params: { uid: edge }, body: { tag: "web" } });
    await changeKey(fleet.client, "ana", { username: ".*" });
    await deleteKey(fleet.client, "bob");
    const uid = await memberId(fleet, "carla@example.com");
    await fleet.client.updateMember({ params: { tenant: fleet.tenant, uid }, body: { role: "observer" } });
  }

  const stackOf = (env: Record<string, string>, name?: string) =>
    program.stack({ env, ...(name !== undefined && { name }) });
  const drift = async (args: readonly string[], code: number) => {
    const report = await stack.result<DriftReport>(["drift", ...args], POLICY, code);
    expect(schemaFaults("drift", report)).toEqual([]);
    return report;
  };
  const file = (name: string) => readFileSync(join(program.folder, name), "utf8");

  it("are reported with their effect, user and time, as text, JSON, Markdown, JUnit and a map", {
    tags: ["long"],
  }, async () => {
    const files = ["drift.md", "drift.xml", "drift.html"].map((name) => join(program.folder, name));
    const [markdown = "", junit = "", html = ""] = files;
    const report = await drift(["--markdown", markdown, "--junit", junit, "--html", html], 2);

    const by = (name: string) => ({ actor: { kind: "user", name }, address: "127.0.0.1" });
    expect(report.drifted.toSorted((a, b) => a.name.localeCompare(b.name))).toMatchObject([
      { name: "ana", op: "update", by: { ...by("admin"), operation: "updatePublicKey" } },
      { name: "bob", op: "delete", by: { ...by("admin"), operation: "deletePublicKey" } },
      {
        name: "carla",
        op: "update",
        effects: ["carla@example.com becomes observer (was operator)"],
        by: { ...by("admin"), operation: "updateMember" },
      },
    ]);
    expect(report.unmanaged.toSorted((a, b) => a.kind.localeCompare(b.kind))).toMatchObject([
      { kind: "DeviceTagAttachment", name: "web on edge-01", id: `${edge}/web`, by: by("carla") },
      { kind: "FirewallRule", name: "allow at priority 999", by: by("dave") },
      { kind: "PublicKey", name: "backdoor", by: { ...by("dave"), operation: "createPublicKey" } },
    ]);
    const meaningOf = (kind: string) => report.unmanaged.find((found) => found.kind === kind)?.effects;
    expect(meaningOf("PublicKey")).toEqual([
      "gives every login from 203.0.113.7 and <any other address> on edge-01, web-01",
    ]);
    expect(meaningOf("FirewallRule")?.join()).toMatch(
      /2 keys .* gain every login from 203\.0\.113\.7 on edge-01, web-01/,
    );
    // Bob's key no longer exists, so the changed tag has no effect on access.
    expect(meaningOf("DeviceTagAttachment")).toEqual([]);
    expect(report.drifted.find(({ name }) => name === "bob")?.effects.join()).toMatch(
      /^no longer gives login bob .*on web-01$/,
    );
    expect(report.namespaces[0]?.members).toEqual([
      { change: "role", email: "carla@example.com", from: "operator", to: "observer" },
    ]);

    expect(report.acceptance.changes.toSorted()).toEqual([
      'Member "carla": role = "observer"',
      'PublicKey "ana": username = ".*"',
      'remove PublicKey "bob"',
    ]);
    expect(report.acceptance.program).toContain(
      'new DeviceTagAttachment("web on edge-01", { device: "edge-01", tag: "web", adopt: true });',
    );
    expect(report.acceptance.program).toContain('sourceIp: cidr("203.0.113.7"),');

    const text = (await stack.run(["drift"], POLICY)).stdout;
    expect(linesWith(text, "backdoor")[0]).toMatch(
      /PublicKey backdoor \([0-9a-f:]+\) is unmanaged; gives every login from 203\.0\.113\.7 and <any other address> on edge-01, web-01; last changed by user dave from 127\.0\.0\.1, \d{4}-\d\d-\d\d \d\d:\d\d UTC \(createPublicKey\)/,
    );
    expect(text).toContain("2 changed out of band, 1 deleted out of band, 3 unmanaged");
    expect(file("drift.md")).toContain("2 changed out of band, 1 deleted out of band, 3 unmanaged");
    expect(file("drift.xml")).toContain('tests="8" failures="6"');
    expect(file("drift.html")).toContain("Access drift in the namespace admin: declared and live access");
    expect(file("drift.html")).toMatch(/"when":"\d{4}-\d\d-\d\d \d\d:\d\d UTC"/);
  });

  it("are no finding if access.ignore lists the object with a reason and an end date", {
    tags: ["long"],
  }, async () => {
    const { unmanaged } = await drift([], 2);
    const id = (kind: string) => unmanaged.find((found) => found.kind === kind)?.id;
    program.write(
      "access.ignore",
      [
        "# access of the vendor",
        `PublicKey ${id("PublicKey")} until 2999-01-31: vendor's key, OPS-12`,
        `FirewallRule ${id("FirewallRule")} until 2020-01-01: was for a move`,
        "Member nobody@example.com until 2999-01-31: left since",
        "",
      ].join("\n"),
    );
    const report = await drift([], 2);
    expect(report.unmanaged.find(({ kind }) => kind === "PublicKey")).toMatchObject({
      exception: { until: "2999-01-31", reason: "vendor's key, OPS-12" },
    });
    expect(report.unmanaged.filter(({ exception }) => exception)).toHaveLength(1);
    expect(report.notes).toEqual([
      "access.ignore:3: this exception ended on 2020-01-01; renew or remove the exception",
      "access.ignore:4: this exception matches no unmanaged object; remove the exception",
    ]);
    const coverage = await stack.run(["coverage", "--fail-on-unmanaged", "--json"], POLICY);
    expect(coverage.code).toBe(2);
    expect(schemaFaults("coverage", JSON.parse(coverage.stdout))).toEqual([]);
    expect(JSON.parse(coverage.stdout)).toMatchObject({
      managed: 5,
      total: 8,
      percent: 62,
      kinds: expect.arrayContaining([{ kind: "PublicKey", managed: 1, total: 2, percent: 50 }]),
    });
    const review = await stack.run(["review", "--no-refresh"], POLICY);
    expect(review.code).toBe(2);
    expect(linesWith(review.stdout, "--allow-unmanaged")).toEqual([
      expect.stringMatching(
        /FirewallRule allow at priority 999 \(\w+\) is unmanaged and widens access: .*203\.0\.113\.7/,
      ),
    ]);
    for (const [line, error] of [
      ["PublicKey x", "access.ignore:1 must have the form <kind> <id> until <YYYY-MM-DD>: <reason>"],
      ["Key x until 2999-01-31: y", "The kind Key is invalid. Use one of Member, PublicKey"],
      ["PublicKey x until 2999-02-30: y", "The date 2999-02-30 is invalid"],
    ] as const) {
      program.write("access.ignore", line);
      const refused = await stack.run(["drift"], POLICY);
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining(error)]);
    }
    rmSync(join(program.folder, "access.ignore"));
  });

  it("fail the run according to --unmanaged, and never fail a run of selected resources", {
    tags: ["long"],
  }, async () => {
    const { carla: _carla, bob: _bob, ana: _ana, ...rest } = policy;
    const alone = stackOf(fleet.env, "alone");
    const run = (args: string[], code: number) =>
      alone.result<DriftReport>(["drift", ...args], policyEnv(rest), code);
    await alone.result(["preview", "--create"], { POLICY: "{}" });
    const all = await run([], 2);
    expect(all.unmanaged.length).toBeGreaterThan(6);
    expect(all.notApplied.length).toBe(3);
    expect((await run(["--unmanaged", "warn"], 0)).unmanaged).toHaveLength(all.unmanaged.length);
    expect((await run(["--unmanaged", "ignore"], 0)).unmanaged).toEqual([]);
    const beside = await run(["--with-stack", stack.name], 2);
    expect(beside.unmanaged.map(({ kind }) => kind).sort()).toEqual(UNMANAGED);
    expect((await drift(["--target", "**::tags"], 0)).unmanaged).toEqual([]);
  });

  it("are reported with the time of the first run that found them, if the service has no audit trail", {
    tags: ["long"],
  }, async () => {
    const sparse = await startSparseService(fleet.service.url, {});
    try {
      const there = stackOf({ ...fleet.env, GATEHOUSE_URL: sparse.url }, stack.name);
      const seen = async () => {
        const found = await there.result<DriftReport>(["drift"], POLICY, 2);
        return found.unmanaged.map(({ kind, by, firstSeen }) => ({ kind, by, firstSeen }));
      };
      const first = await seen();
      expect(first.map(({ kind }) => kind).sort()).toEqual(UNMANAGED);
      for (const { by, firstSeen } of first) {
        expect(by).toBeUndefined();
        expect(firstSeen).toMatch(/^\d{4}-\d\d-\d\dT/);
      }
      expect(await seen()).toEqual(first);
    } finally {
      await sparse.stop();
      rmSync(join(program.folder, `access.seen.${stack.name}.json`), { force: true });
    }
  });

  it("are reverted by a repair, which also deletes unmanaged objects", { tags: ["long"] }, async () => {
    const run = await stack.run(["drift", "--repair", "--yes"], POLICY);
    expect([run.code, run.stderr]).toEqual([0, ""]);
    expect(
      linesWith(run.stdout, " -  ").filter((line) => line.endsWith(" deleted") && !line.includes("will be")),
    ).toHaveLength(3);
    expect(run.stdout).toContain("No drift");
    const keys = await fleet.client.getPublicKeys({ query: { perPage: 100 } });
    expect(keys.map(({ name, username }) => `${name} ${username}`).sort()).toEqual([
      "ana ^root$",
      "bob ^bob$",
    ]);
    const report = await drift([], 0);
    expect(report).toMatchObject({ version: 1, drifted: [], unmanaged: [], notApplied: [], notes: [] });
    expect(report.namespaces).toMatchObject([{ name: "admin", access: [], members: [] }]);
  });
});
