import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { inventoryOf } from "../../provider/namespace/liveObjects.ts";
import { TerraformResource } from "../../provider/providers/terraform/resource.ts";
import { definitionsByName, type KindName } from "../../provider/resources/index.ts";
import { Connection } from "../../provider/service/connection.ts";
import { SOURCE } from "../../provider/terraform/source.ts";
import { createClient, passwordCredential } from "../../sdk/index.ts";
import { changeKey, createKey, deleteKey } from "../support/fleet.ts";
import { testFolder } from "../support/folder.ts";
import { gatehouse } from "../support/gatehouse.ts";
import { keyData } from "../support/policy.ts";
import { sharedFleet } from "../support/sharedFleet.ts";
import {
  hasTerraform,
  keyArguments,
  LABEL,
  resources,
  ruleArguments,
  sharedTerraform,
} from "./support/terraform.ts";

type Row = Record<string, unknown>;

/** A resource in a test plan: its attributes in the state, after the refresh, and in the plan. */
interface Planned {
  readonly address: string;
  readonly type: string;
  readonly state: Row;
  readonly refreshed?: Row | null;
  readonly after?: Row;
}

const DENY = { action: "deny", active: true, sourceIp: ".*", username: "^root$" } as const;

describe("drift of a Terraform plan", () => {
  const fleet = sharedFleet();
  let folder: string;
  beforeAll(async () => void (await fleet.enroll("edge-01")));
  beforeEach(() => {
    folder = testFolder();
  });
  afterEach(() => fleet.clear());
  const planFile = () => join(folder, "plan.json");

  /** Returns a resource for each live object of these kinds, with the attributes that its state has. */
  async function resourcesOf(...kinds: readonly KindName[]): Promise<Planned[]> {
    const { objects } = await inventoryOf(
      new Connection(fleet.client),
      fleet.tenant,
      kinds.map((kind) => definitionsByName[kind]),
    );
    return objects.map(({ definition, id, name, state }) => {
      const resource = new TerraformResource(definition);
      const label = name.replaceAll(/\W/g, "_");
      const row = resource.row({ id, state }, {});
      return { address: `${resource.typeName}.r${label}`, type: resource.typeName, state: row };
    });
  }

  const provider_name = `registry.terraform.io/${SOURCE}`;
  const changeOf = ({ address, type, state, refreshed = state, after = refreshed ?? state }: Planned) => ({
    address,
    type,
    mode: "managed",
    provider_name,
    change: {
      actions: refreshed === null ? ["create"] : after === refreshed ? ["no-op"] : ["update"],
      before: refreshed,
      after,
      after_unknown: {},
    },
  });

  /**
   * Writes a plan of resources whose configuration sets all attributes.
   * @param omitted resources that the plan omits, as with `-target`
   * @param url the service in the provider block
   */
  function write(
    planned: readonly Planned[],
    { omitted = [], url }: { readonly omitted?: readonly Planned[]; readonly url?: string } = {},
  ): void {
    const all = [...planned, ...omitted];
    const expressions = (row: Row) => Object.fromEntries(Object.keys(row).map((name) => [name, {}]));
    const plan = {
      format_version: "1.2",
      planned_values: {},
      complete: omitted.length === 0,
      resource_changes: planned.map(changeOf),
      resource_drift: planned
        .filter(({ refreshed }) => refreshed !== undefined)
        .map(({ address, type, state, refreshed }) => ({
          address,
          type,
          provider_name,
          change: { actions: [refreshed ? "update" : "delete"], before: state, after: refreshed },
        })),
      prior_state: {
        values: {
          root_module: {
            resources: all
              .filter(({ refreshed }) => refreshed !== null)
              .map(({ address, type, state, refreshed }) => ({
                address,
                type,
                mode: "managed",
                provider_name,
                values: refreshed ?? state,
              })),
          },
        },
      },
      configuration: {
        provider_config: {
          gatehouse: {
            full_name: provider_name,
            expressions: url === undefined ? {} : { url: { constant_value: url } },
          },
        },
        root_module: {
          resources: all.map(({ address, type, state }) => ({
            address,
            type,
            provider_config_key: "gatehouse",
            expressions: expressions(state),
          })),
        },
      },
    };
    writeFileSync(planFile(), JSON.stringify(plan));
  }

  /** Changes the written plan. */
  // biome-ignore lint/suspicious/noExplicitAny: a plan has many parts
  function editPlan(edit: (plan: any) => void): void {
    const plan = JSON.parse(readFileSync(planFile(), "utf8"));
    edit(plan);
    writeFileSync(planFile(), JSON.stringify(plan));
  }

  /** Creates the key `ana`. Returns its resource. */
  async function createAna(): Promise<Planned> {
    await createKey(fleet.client, "ana", "^ana$");
    return keyAna();
  }
  async function keyAna(): Promise<Planned> {
    const [resource] = await resourcesOf("PublicKey");
    if (!resource) throw new Error("the key is missing");
    return resource;
  }

  async function drift(...flags: readonly string[]) {
    const args = ["drift", folder, "--terraform", planFile(), "--json", ...flags];
    const { code, stdout, stderr } = await gatehouse(args, fleet.env);
    if (stdout === "") throw new Error(stderr);
    const report = JSON.parse(stdout);
    const drifted = report.drifted.map(
      ({ name, op, fields }: { name: string; op: string; fields: { path: string }[] }) =>
        [name, op, ...fields.map(({ path }) => path)].join(" "),
    );
    return { code, report, drifted, same: report.summary.same, notEvaluated: report.notEvaluated };
  }

  const addRule = async (priority: number) => {
    const body = { ...DENY, priority, filter: { hostname: ".*" } };
    return (await fleet.client.createFirewallRule({ body })).id;
  };
  const open = (name: string) => changeKey(fleet.client, name, { username: ".*" });

  it("finds changed, disabled and deleted objects that the plan does not contain, with their effect", async () => {
    const [deleted, disabled] = [await addRule(1), await addRule(2)];
    for (const name of ["ana", "ben"]) await createKey(fleet.client, name, `^${name}$`);
    const planned = await resourcesOf("PublicKey", "FirewallRule");
    write(planned);
    expect(await drift()).toMatchObject({ code: 0, drifted: [], same: 4, notEvaluated: [] });

    await fleet.client.deleteFirewallRule({ params: { id: deleted } });
    await fleet.client.updateFirewallRule({
      params: { id: disabled },
      body: { ...DENY, active: false, priority: 2, filter: { hostname: ".*" } },
    });
    await open("ana");
    const { code, drifted, same, report } = await drift();
    expect([code, same]).toEqual([2, 1]);
    const rules = planned.filter(({ type }) => type === "gatehouse_firewall_rule");
    const addressOf = (id: string) => rules.find(({ state }) => state.rule_id === id)?.address;
    expect(drifted.toSorted()).toEqual(
      [
        `${addressOf(deleted)} delete`,
        `${addressOf(disabled)} update active`,
        "gatehouse_public_key.rana update username",
      ].toSorted(),
    );
    const [key] = report.drifted.filter(({ name }: { name: string }) => name.endsWith("rana"));
    expect(key.fields).toEqual([{ path: "username", old: "^ana$", new: ".*" }]);
    expect(key.effects).toEqual([expect.stringContaining("<any other login>")]);
    expect(report.namespaces[0].access).toEqual([expect.objectContaining({ change: "gained" })]);
    expect(report.notApplied).toEqual([]);
  });

  it("compares the resources that a plan with -target omits, and notes that the plan is partial", async () => {
    for (const name of ["ana", "ben"]) await createKey(fleet.client, name, `^${name}$`);
    const [first, second] = await resourcesOf("PublicKey");
    if (!first || !second) throw new Error("the keys are missing");
    write([first], { omitted: [second] });
    const PARTIAL = expect.stringContaining("covers only a part of the configuration");
    const before = await drift();
    expect(before).toMatchObject({ code: 0, same: 2 });
    expect(before.report.notes).toContainEqual(PARTIAL);
    const args = ["review", folder, "--terraform", planFile(), "--json"];
    const review = await gatehouse(args, fleet.env);
    expect(JSON.parse(review.stdout).unknown).toContainEqual(PARTIAL);
    expect(review.code).toBe(0);
    await open(second.state.name as string);
    expect(await drift()).toMatchObject({ code: 2, same: 1, drifted: [`${second.address} update username`] });
  });

  it("notes no partial plan if the state contains a data source", async () => {
    write([await createAna()]);
    const data = { mode: "data", type: "gatehouse_tag", values: { name: "a" } };
    editPlan(({ prior_state }) =>
      prior_state.values.root_module.resources.push({ address: "data.gatehouse_tag.a", ...data }),
    );
    expect(await drift()).toMatchObject({ code: 0, same: 1, report: { notes: [] } });
  });

  it("depends on the live objects, not on the time of the refresh", async () => {
    const ana = await createAna();
    const wide = { ...ana.state, username: ".*" };
    const opened = { ...ana, refreshed: wide, after: ana.state };
    write([opened]);
    // The change was reverted after the plan.
    expect(await drift()).toMatchObject({ code: 0, same: 1, report: { notApplied: [] } });
    await open("ana");
    expect(await drift()).toMatchObject({ code: 2, drifted: [`${ana.address} update username`] });
    // The plan creates an object that existed at the time of the state, and exists again.
    write([{ ...ana, refreshed: null }]);
    expect(await drift()).toMatchObject({ code: 2, drifted: [`${ana.address} update username`] });
    await deleteKey(fleet.client, "ana");
    expect(await drift()).toMatchObject({ code: 2, drifted: [`${ana.address} delete`] });
  });

  it("is no drift if the live value is the planned one, or the configuration ignores the field", async () => {
    const ana = await createAna();
    await open("ana");
    write([{ ...ana, after: { ...ana.state, username: ".*" } }]);
    expect(await drift()).toMatchObject({ code: 0, drifted: [], same: 1, report: { notApplied: [] } });
    write([{ ...ana, after: { ...ana.state, username: "^ben$" } }]);
    const both = await drift();
    expect(both).toMatchObject({ code: 2, drifted: [`${ana.address} update username`] });
    expect(both.report.notApplied).toMatchObject([{ fields: [{ path: "username", new: "^ben$" }] }]);

    write([ana]);
    const configuration = (list: string) =>
      `resource "gatehouse_public_key" "rana" {\n  lifecycle {\n    precondition {\n      condition = true\n    }\n    ignore_changes = ${list}\n  }\n}\n`;
    const file = join(folder, "main.tf");
    for (const list of ["[username]", "[name, username,]", "all"]) {
      writeFileSync(file, configuration(list));
      expect(await drift(), list).toMatchObject({ code: 0, drifted: [] });
    }
    writeFileSync(file, configuration("[name, username[0]]"));
    expect(await drift()).toMatchObject({ code: 2 });
    writeFileSync(file, "");
    const lifecycle = { ignore_changes: ["username"] };
    const json = { resource: { gatehouse_public_key: { rana: { lifecycle } } } };
    writeFileSync(`${file}.json`, JSON.stringify(json));
    expect(await drift()).toMatchObject({ code: 0, drifted: [] });
    writeFileSync(file, configuration("[name]"));
    expect(await drift()).toMatchObject({ code: 2 });
  });

  it("keeps a manual change of an argument that is null as drift", async () => {
    const ana = await createAna();
    const expiresAt = "2090-01-01T00:00:00Z";
    await changeKey(fleet.client, "ana", { expiresAt });
    const ended = await keyAna();
    const driftWith = async (expression: object, end: unknown) => {
      write([{ ...ana, refreshed: ended.state }]);
      editPlan((plan) => {
        plan.configuration.root_module.resources[0].expressions.expires_at = expression;
        plan.variables = { end: { value: end } };
      });
      return (await drift()).drifted;
    };
    writeFileSync(join(folder, "main.tf"), 'variable "end" {\n  default = null\n}\n');
    const found = [`${ana.address} update expiresAt expiryStatus`];
    const variable = { references: ["var.end"] };
    const template = { constant_value: `\${var.end}`, ...variable };
    const end = ended.state.expires_at;
    expect(await driftWith(variable, null)).toEqual(found);
    expect(await driftWith(template, null)).toEqual(found);
    expect(await driftWith({ constant_value: null }, null)).toEqual(found);
    // A condition such as `var.end == "never" ? null : var.end`.
    expect(await driftWith(variable, "never")).toEqual(found);
    // A call such as `length(var.end) > 0 ? null : var.end[0]`.
    expect(await driftWith(variable, [end])).toEqual(found);
    expect(await driftWith({ references: ["local.end"] }, end)).toEqual(found);
    expect(await driftWith(variable, end)).toEqual([]);
    expect(await driftWith(template, end)).toEqual([]);
    expect(await driftWith({ constant_value: end }, null)).toEqual([]);
  });

  it("does not evaluate objects on another service, and does not read them on this one", async () => {
    write([await createAna()], { url: "http://127.0.0.1:1" });
    const { code, drifted, same, notEvaluated } = await drift("--unmanaged", "ignore");
    expect([code, drifted, same]).toEqual([2, [], 0]);
    expect(notEvaluated).toEqual([
      "gatehouse_public_key.rana: not compared with the live service: the object is on another service (http://127.0.0.1:1)",
    ]);
  });

  it("does not evaluate an object whose block was removed, if the provider blocks have several services", async () => {
    const ana = await createAna();
    /** Writes a plan that deletes the key, whose block was removed, with a provider block for each address. */
    const writeRemoved = (...urls: readonly string[]) => {
      write([ana]);
      editPlan(({ configuration, resource_changes }) => {
        configuration.root_module.resources = [];
        Object.assign(resource_changes[0].change, { actions: ["delete"], after: null });
        for (const [index, url] of urls.entries()) {
          const alias = `b${index}`;
          const expressions = { alias: { constant_value: alias }, url: { constant_value: url } };
          configuration.provider_config[`gatehouse.${alias}`] = {
            full_name: provider_name,
            alias,
            expressions,
          };
        }
      });
    };
    writeRemoved(fleet.service.url, fleet.service.url);
    expect(await drift()).toMatchObject({ code: 0, drifted: [], same: 1, notEvaluated: [] });

    await deleteKey(fleet.client, "ana");
    expect(await drift()).toMatchObject({ code: 2, drifted: ["gatehouse_public_key.rana delete"] });
    writeRemoved(fleet.service.url, "http://127.0.0.1:1");
    const { code, drifted, notEvaluated } = await drift();
    expect([code, drifted]).toEqual([2, []]);
    expect(notEvaluated).toContainEqual(
      "gatehouse_public_key.rana: not compared with the live service: the address of its service is unknown in the plan",
    );
    const { stdout } = await gatehouse(["review", folder, "--terraform", planFile(), "--json"], fleet.env);
    expect(JSON.parse(stdout).notEvaluated).toEqual([
      expect.stringContaining("on a service whose address is secret or unknown before the apply"),
    ]);
  });

  it("does not evaluate objects that the credential cannot read", async () => {
    const ana = await createAna();
    await fleet.service.createUser({ username: "neighbor", password: "correct-horse" });
    const credential = passwordCredential({ username: "neighbor", password: "correct-horse" });
    await using neighbor = createClient({ url: fleet.service.url, credential });
    const { tenantId } = await neighbor.createNamespace({ body: { name: "neighbor" } });
    const state = {
      ...ana.state,
      tenant: tenantId,
      id: String(ana.state.id).replace(fleet.tenant, tenantId),
    };
    write([ana, { ...ana, address: "gatehouse_public_key.other", state }]);
    const { code, same, drifted, notEvaluated } = await drift();
    expect([code, same, drifted]).toEqual([2, 1, []]);
    expect(notEvaluated).toContainEqual(
      expect.stringMatching(/^gatehouse_public_key\.other: not compared with the live service: /),
    );
  });

  it("is no drift if only the service changed an object", async () => {
    const { id: uid } = await fleet.service.createUser({ username: "carla", password: "correct-horse" });
    const body = { email: "carla@example.com", role: "observer" } as const;
    await fleet.client.inviteMember({ params: { tenant: fleet.tenant }, body });
    const members = await resourcesOf("Member");
    const otherStatus = ({ status }: Row) => (status === "pending" ? "accepted" : "pending");
    write(
      members.map((member) => ({ ...member, state: { ...member.state, status: otherStatus(member.state) } })),
    );
    const { code, drifted, report } = await drift();
    expect([code, drifted]).toEqual([0, []]);
    expect(report.notes).toContainEqual(expect.stringContaining("was changed by the service: status is"));
    await fleet.client.removeMember({ params: { tenant: fleet.tenant, uid } });
  });

  it("reads API keys, whose secret is not in the state", async () => {
    const { name } = await fleet.client.createApiKey({
      body: { name: "deploy", role: "operator", expiresAt: -1 },
    });
    write(await resourcesOf("ApiKey"));
    expect(await drift()).toMatchObject({ code: 0, drifted: [], same: 1, notEvaluated: [] });
    await fleet.client.updateApiKey({ params: { key: name }, body: { role: "administrator" } });
    expect(await drift()).toMatchObject({ code: 2, drifted: [expect.stringContaining("update role")] });
  });
});

describe.runIf(hasTerraform)(`drift of a plan of ${LABEL}`, () => {
  const fleet = sharedTerraform();
  beforeAll(async () => void (await fleet.enroll("edge-01")));

  it("is found with -refresh=false and with -target", { tags: ["long"] }, async () => {
    const root = fleet.newModule();
    const key = (name: string) => keyArguments({ name, data: keyData(name), username: `^${name}$` });
    await root.applied({
      ...resources({
        public_key: { ana: key("ana"), ben: key("ben") },
        firewall_rule: { first: ruleArguments(), second: ruleArguments({ priority: 2 }) },
      }),
      data: { gatehouse_devices: { all: {} } },
    });
    const plan = async (...flags: readonly string[]) => {
      const file = await root.planFile(...flags);
      const args = ["drift", root.folder, "--terraform", file, "--json"];
      const { code, stdout } = await gatehouse(args, fleet.env);
      const { drifted, summary, notes } = JSON.parse(stdout);
      const found = drifted.map(({ name, op }: { name: string; op: string }) => `${op} ${name}`);
      const isPartial = notes.some((note: string) => note.includes("covers only a part"));
      return { code, same: summary.same, found: found.toSorted(), isPartial };
    };
    const unread = [["-refresh=false"], ["-target=gatehouse_public_key.ben"]];
    for (const flags of [...unread, []]) {
      const isPartial = flags.join().includes("-target");
      expect(await plan(...flags), flags.join()).toEqual({ code: 0, same: 4, found: [], isPartial });
    }

    const { client } = fleet;
    for (const { id, priority, ...body } of await client.getFirewallRules()) {
      if (priority === 1) await client.deleteFirewallRule({ params: { id } });
      else
        await client.updateFirewallRule({
          params: { id },
          body: { ...DENY, priority, active: false, filter: body.filter },
        });
    }
    await changeKey(client, "ana", { username: ".*" });
    for (const flags of [...unread, []])
      expect(await plan(...flags), flags.join()).toMatchObject({
        code: 2,
        same: 1,
        found: [
          "delete gatehouse_firewall_rule.first",
          "update gatehouse_firewall_rule.second",
          "update gatehouse_public_key.ana",
        ],
      });
  });
});
