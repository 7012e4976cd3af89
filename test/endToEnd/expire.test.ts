import { readFileSync, writeFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import type { DriftReport } from "../../provider/drift/driftReport.ts";
import { type ExpireReport, findExpired, removeExpired } from "../../provider/drift/expire.ts";
import { definitionNamed } from "../../provider/namespace/liveObjects.ts";
import { Connection } from "../../provider/service/connection.ts";
import { createClient, passwordCredential } from "../../sdk/index.ts";
import { DAY } from "../../sdk/times.ts";
import { environmentWithout } from "../support/command.ts";
import { changeKey, createKey, deleteKey, memberId } from "../support/fleet.ts";
import { COMMAND, gatehouse } from "../support/gatehouse.ts";
import { firewallRule, keyData, policyEnv, publicKey } from "../support/policy.ts";
import { type PolicyProgram, sharedProgram } from "../support/policyProgram.ts";
import { schemaFaults } from "../support/schemas.ts";
import { shared } from "../support/shared.ts";
import { sharedFleet } from "../support/sharedFleet.ts";
import { startSparseService } from "../support/sparseService.ts";
import { openTerminal } from "../support/terminal.ts";

const ENDED = new Date(Date.now() - 3 * DAY - DAY / 2).toISOString();
const LATER = new Date(Date.now() + DAY).toISOString();

const all = { hostname: ".*" };

/** Returns the program, in which four resources have this end. */
const ending = (expiresAt: string) => ({
  ana: publicKey("ana"),
  later: publicKey("later", "^root$", all, { expiresAt: LATER }),
  temp: publicKey("temp", "^root$", all, { expiresAt }),
  altered: publicKey("altered", "^root$", all, { expiresAt }),
  guests: firewallRule("deny", 10, { sourceIp: "^203\\.", expiresAt }),
  carla: { type: "Member", args: { email: "carla@example.com", role: "operator", expiresAt } },
});
const POLICY = policyEnv(ending(ENDED));

/** Applies the program with ends in the future, and then moves these ends in the state, as if time had passed. */
async function expiredStack(program: PolicyProgram, env: Record<string, string>, name: string) {
  const stack = program.stack({ env, name });
  const soon = new Date(Date.now() + DAY / 2).toISOString();
  await stack.apply(ending(soon));
  const path = program.stateFile(name);
  writeFileSync(path, readFileSync(path, "utf8").replaceAll(soon, ENDED));
  return stack;
}

// Long tests run many commands. test/review/guards/expire.test.ts covers the selection of the objects.
describe("expired objects on a server that does not end access", { timeout: 120_000 }, () => {
  const fleet = sharedFleet(["carla"]);
  const sparse = shared(() => startSparseService(fleet.service.url));
  const program = sharedProgram();
  let env: Record<string, string>;
  beforeAll(() => {
    env = { ...fleet.env, GATEHOUSE_URL: sparse.url };
  });

  const runEnv = () => ({
    ...environmentWithout("GATEHOUSE_", "PULUMI_"),
    ...env,
    ...program.backend,
  });
  const words = (name: string) => ["expire", program.folder, "--stack", name, "--engine", "embedded"];

  /** Runs the command in a terminal, and answers its question. Returns the exit code and the output. */
  async function answered(name: string, answer: string) {
    const terminal = openTerminal(process.execPath, [COMMAND, ...words(name)], { env: runEnv() });
    await terminal.untilShown("Remove 3 objects? [y/N]");
    terminal.type(answer);
    return { code: await terminal.code, shown: terminal.shown() };
  }

  const namesOf = async () => {
    const keys = await fleet.client.getPublicKeys({ query: { perPage: 100 } });
    const rules = await fleet.client.getFirewallRules({ query: { perPage: 100 } });
    const { members } = await fleet.client.getNamespace({ params: { tenant: fleet.tenant } });
    return [
      ...keys.map(({ name }) => name),
      ...rules.map(({ action }) => `rule ${action}`),
      ...members.map(({ email }) => email),
    ].sort();
  };

  it("are listed, removed after a confirmation, and are no drift", { tags: ["long"] }, async () => {
    const stack = await expiredStack(program, env, "first");
    await changeKey(fleet.client, "altered", { username: ".*" });
    const expire = async (args: readonly string[], code: number) => {
      const report = await stack.result<ExpireReport>(["expire", ...args], POLICY, code);
      expect(schemaFaults("expire", report)).toEqual([]);
      return Object.fromEntries(report.objects.map(({ name, status }) => [name, status]));
    };
    const before = await namesOf();
    const state = stack.stateText("commonjs-program");

    const listed = { temp: "by-run", altered: "changed", guests: "by-run", carla: "by-run" };
    expect(await expire([], 2)).toEqual(listed);
    expect(await namesOf()).toEqual(before);

    const text = await stack.run(["expire"], POLICY);
    expect(text.code).toBe(2);
    expect(text.stdout).toContain(
      "PublicKey temp: expired 3 days ago; delete this resource from the program; the access continues until the next run or gatehouse expire",
    );
    expect(text.stdout).toMatch(/PublicKey altered: .*; username changed out of band/);
    expect(text.stdout).toContain("4 expired objects still give access");

    const drift = await stack.result<DriftReport>(["drift"], POLICY, 2);
    expect(schemaFaults("drift", drift)).toEqual([]);
    expect(drift.drifted.map(({ name }) => name)).toEqual(["altered"]);
    expect(drift.expired.map(({ name }) => name).sort()).toEqual(["altered", "carla", "guests", "temp"]);

    expect((await answered("first", "n")).code).toBe(2);
    expect(await namesOf()).toEqual(before);
    const confirmed = await answered("first", "y");
    expect(confirmed.code).toBe(2);
    expect(confirmed.shown).toContain(
      "PublicKey temp: expired 3 days ago; delete this resource from the program\r\n",
    );
    expect(confirmed.shown).toContain("1 expired object still gives access");
    const gone = ["temp", "rule deny", "carla@example.com"];
    expect(await namesOf()).toEqual(before.filter((name) => !gone.includes(name)));
    expect(stack.stateText("commonjs-program")).toBe(state);

    await deleteKey(fleet.client, "altered");
    expect(await expire(["--yes"], 0)).toEqual({});
    const left = await stack.run(["drift", "--markdown", program.path("drift.md")], POLICY);
    expect(left.stdout).toContain("No drift");
    expect(left.stdout).toContain(
      "PublicKey temp: expired 3 days ago; delete this resource from the program\n",
    );
    expect(left.code).toBe(0);
    expect(readFileSync(program.path("drift.md"), "utf8")).toContain("Expired: 4");

    const repair = await stack.run(["drift", "--repair", "--yes"], POLICY);
    expect(repair.code).toBe(0);
    expect(await namesOf()).not.toContain("temp");
  });

  it("are removed with --yes only if no other resource declares the object, and if the state contains the end", {
    tags: ["long"],
  }, async () => {
    const renewed = { renewed: publicKey("renewed") };
    const policy = policyEnv(renewed);
    const stack = program.stack({ env, name: "second" });
    await stack.apply(renewed);
    const path = program.stateFile("second");
    const state = JSON.parse(readFileSync(path, "utf8"));
    const { resources } = state.checkpoint.latest;
    const key = resources.find(({ urn }: { urn: string }) => urn.endsWith("::renewed"));
    const end = { expiresAt: ENDED, expiryStatus: "by-run" };
    const former = { ...key, urn: `${key.urn}-former`, outputs: { ...key.outputs, ...end } };
    const { checkpoint } = state;
    const put = (...all: readonly object[]) => {
      const latest = { ...checkpoint.latest, resources: all };
      writeFileSync(path, JSON.stringify({ ...state, checkpoint: { ...checkpoint, latest } }));
    };
    put(...resources, former);
    const report = await stack.result<ExpireReport>(["expire", "--yes"], policy);
    expect(report.objects).toEqual([]);
    expect(await namesOf()).toContain("renewed");

    put(...resources, { ...former, outputs: { ...former.outputs, expiresAt: { secret: "…" } } });
    const unreadable = await stack.run(["expire", "--yes"], policy);
    expect(unreadable.code).toBe(2);
    expect(unreadable.stdout).toContain(
      "PublicKey renewed-former: the state does not contain its end in plaintext",
    );
    expect(unreadable.stdout).toContain("No expired object is known to give access; 1 not evaluated.");

    put(...resources.filter((resource: object) => resource !== key), former);
    const removed = await stack.result<ExpireReport>(["expire", "--yes"], policy);
    expect(removed.objects).toMatchObject([{ name: "renewed-former", status: "removed" }]);
    expect(await namesOf()).not.toContain("renewed");
  });

  it("of a Terraform plan are removed if they are as declared", async () => {
    const fingerprint = await createKey(fleet.client, "ci", "^root$");
    const altered = await createKey(fleet.client, "moved", "^other$");
    const row = (name: string, print: string) => ({
      id: `${fleet.tenant}/${print}`,
      tenant: fleet.tenant,
      name,
      data: keyData(name),
      username: "^root$",
      filter: { hostname: ".*", tags: null },
      fingerprint: print,
      created_at: "",
      owner: "",
      owner_id: "",
      expires_at: ENDED,
      expiry_status: "by-run",
    });
    const resources = { ci: row("ci", fingerprint), moved: row("moved", altered) };
    const type = "gatehouse_public_key";
    const blocks = Object.keys(resources).map((name) => ({ address: `${type}.${name}`, type }));
    const plan = {
      format_version: "1.2",
      planned_values: {},
      configuration: { root_module: { resources: blocks } },
      resource_changes: Object.entries(resources).map(([name, values]) => ({
        address: `${type}.${name}`,
        mode: "managed",
        type,
        name,
        change: { actions: ["no-op"], before: values, after: values, after_unknown: {} },
      })),
    };
    program.write("plan.json", JSON.stringify(plan));
    const words = ["expire", program.folder, "--terraform", program.path("plan.json"), "--yes"];
    const { code, stdout } = await gatehouse([...words, "--json"], env);
    const { objects } = JSON.parse(stdout) as ExpireReport;
    expect([code, objects.map(({ name, status }) => [name, status])]).toEqual([
      2,
      [
        ["gatehouse_public_key.ci", "removed"],
        ["gatehouse_public_key.moved", "changed"],
      ],
    ]);
    expect(await namesOf()).toContain("moved");
    expect(await namesOf()).not.toContain("ci");
  });

  it("stay if they change between the list and the deletion", async () => {
    const credential = passwordCredential({
      username: fleet.env.GATEHOUSE_USERNAME ?? "",
      password: fleet.env.GATEHOUSE_PASSWORD ?? "",
    });
    const client = createClient({ url: sparse.url, credential });
    const connection = new Connection(client, { defaultTenant: fleet.tenant });
    const definition = definitionNamed("PublicKey");
    const fingerprint = await createKey(fleet.client, "raced", "^root$");
    const id = `${fleet.tenant}/${fingerprint}`;
    const live = await definition.read(connection, id, {});
    const end = { expiresAt: ENDED, expiryStatus: "by-run" };
    const resource = {
      urn: "urn:pulumi:s::p::t::raced",
      id,
      type: "gatehouse:index:PublicKey",
      outputs: { ...live?.state, ...end },
    };
    // Another stack declares the same object. Its end is the same time in another notation.
    const notation = ENDED.replace("Z", "+00:00");
    const ofOther = {
      urn: "urn:pulumi:o::p::t::raced",
      outputs: { ...resource.outputs, expiresAt: notation },
    };
    const others = [{ ...resource, definition, ...ofOther }];
    const search = { connection, resources: [resource], others };
    try {
      const found = await findExpired(search);
      expect(found.objects).toMatchObject([{ name: "raced", status: "by-run" }]);
      const lasting = others.map((one) => ({ ...one, outputs: { ...one.outputs, expiresAt: LATER } }));
      expect((await findExpired({ ...search, others: lasting })).objects).toEqual([]);
      await changeKey(fleet.client, "raced", { username: ".*" });
      const after = await removeExpired(search, found, () => expect.unreachable());
      expect(after.objects).toMatchObject([{ name: "raced", status: "changed" }]);
      expect(await namesOf()).toContain("raced");
    } finally {
      await client.close();
    }
  });

  it("are an error if the stack does not exist, or if the service fails", async () => {
    const { code, stderr } = await program.stack({ env, name: "missing" }).run(["expire"]);
    expect(code).toBe(1);
    expect(stderr).toContain("The stack missing does not exist or has no resources");
    const broken = { GATEHOUSE_API_KEY: "4d6e1d2c-0000-4000-8000-000000000000", GATEHOUSE_USERNAME: "" };
    const failed = await program.stack({ env, name: "first" }).run(["expire", "--yes"], broken);
    expect(failed.code).toBe(1);
  });
});

describe("expired objects on this project's server", { tags: ["long"], timeout: 120_000 }, () => {
  const fleet = sharedFleet(["carla"]);
  const program = sharedProgram();

  it("a state of an earlier version, without ends and owners, is no drift", async () => {
    const former = {
      ana: publicKey("former"),
      guests: firewallRule("deny", 20),
      carla: { type: "Member", args: { email: "carla@example.com", role: "operator" } },
    };
    const policy = policyEnv(former);
    const stack = program.stack({ env: fleet.env, name: "earlier" });
    await stack.apply(former);
    const path = program.stateFile("earlier");
    const state = JSON.parse(readFileSync(path, "utf8"));
    const added = ["expiresAt", "expiryStatus", "owner", "ownerId", "invitationExpiresAt"];
    for (const { urn, inputs, outputs } of state.checkpoint.latest.resources) {
      for (const values of [inputs, outputs]) for (const name of added) delete values?.[name];
      // The end of an invitation that the user has accepted since.
      if (urn.endsWith("::carla")) outputs.expiresAt = LATER;
    }
    writeFileSync(path, JSON.stringify(state));
    const drift = await stack.result<DriftReport>(["drift", "--unmanaged", "ignore"], policy);
    expect([drift.drifted, drift.expired]).toEqual([[], []]);
    expect(drift.notes).toEqual([
      'Member carla was changed by the service: invitationExpiresAt is "" now; refresh to update the state',
    ]);
    await changeKey(fleet.client, "former", { username: ".*", expiresAt: LATER });
    const changed = await stack.result<DriftReport>(["drift", "--unmanaged", "ignore"], policy, 2);
    expect(changed.drifted.map(({ name, fields }) => [name, fields.map(({ path }) => path)])).toEqual([
      ["ana", expect.arrayContaining(["expiresAt"])],
    ]);
    await stack.result(["destroy", "--yes"], policy);
  });

  it("need no removal, are no drift and count as neither managed nor unmanaged", async () => {
    const stack = await expiredStack(program, fleet.env, "own");
    await createKey(fleet.client, "left");
    for (const name of ["temp", "altered", "left"])
      await changeKey(fleet.client, name, { username: "^root$", expiresAt: ENDED });
    const [rule] = await fleet.client.getFirewallRules({ query: { perPage: 100 } });
    if (!rule) throw new Error("the program declares a rule");
    const { id, tenantId: _, revision: _revision, declaredBy: _declaredBy, ...declared } = rule;
    await fleet.client.updateFirewallRule({ params: { id }, body: { ...declared, expiresAt: ENDED } });
    const params = { tenant: fleet.tenant, uid: await memberId(fleet, "carla@example.com") };
    await fleet.client.updateMember({ params, body: { accessExpiresAt: ENDED } });

    const report = await stack.result<ExpireReport>(["expire", "--yes"], POLICY);
    expect(report.objects).toEqual([]);
    const drift = await stack.run(["drift", "--junit", program.path("drift.xml")], POLICY);
    expect(drift.stdout).toContain(
      "PublicKey left: expired 3 days ago; no resource declares this object; delete the object manually",
    );
    expect(drift.stdout).toContain(
      "PublicKey temp: expired 3 days ago; delete this resource from the program\n",
    );
    expect(drift).toMatchObject({ code: 0, stdout: expect.stringContaining("5 expired objects") });
    expect(readFileSync(program.path("drift.xml"), "utf8")).toContain('failures="0"');
    const coverage = await stack.run(["coverage", "--fail-on-unmanaged"], POLICY);
    expect(coverage).toMatchObject({ code: 0, stdout: expect.stringContaining("PublicKey left: expired") });

    // The end was removed out of band, so the key gives access again.
    await changeKey(fleet.client, "temp", { expiresAt: null });
    const reopened = await stack.run(["expire", "--yes"], POLICY);
    expect(reopened.code).toBe(2);
    expect(reopened.stdout).toMatch(/PublicKey temp: .*; expiresAt changed out of band/);
    const drifted = await stack.result<DriftReport>(["drift"], POLICY, 2);
    expect(drifted.drifted.map(({ name, fields }) => [name, fields[0]?.path])).toEqual([
      ["temp", "expiresAt"],
    ]);
  });
});
