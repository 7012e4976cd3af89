import { randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { apiKeyCredential, createClient } from "../../sdk/index.ts";
import { sshKeyLine } from "../provider/support/programs.ts";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { testFolder } from "../support/folder.ts";
import {
  type AttachedProvider,
  changesIn,
  hasTerraform,
  LABEL,
  RootModule,
  startProvider,
} from "./support/terraform.ts";

describe.runIf(hasTerraform)(`configurations of ${LABEL}`, () => {
  let fleet: Fleet;
  let provider: AttachedProvider;
  let root: RootModule;
  beforeAll(async () => {
    fleet = await startFleet(["ana"]);
    provider = await startProvider(fleet.env);
    await fleet.enroll("edge-01");
  });
  afterAll(async () => {
    await provider.stop();
    await fleet.stop();
  });
  beforeEach(() => {
    root = newModule();
  });
  // Deletes objects that a failed test left, so that they do not affect other tests.
  afterEach(async () => {
    const { client } = fleet;
    for (const { fingerprint } of await client.getPublicKeys())
      await client.deletePublicKey({ params: { fingerprint } });
    for (const { id } of await client.getFirewallRules()) await client.deleteFirewallRule({ params: { id } });
  });
  const newModule = () => new RootModule(testFolder(), { ...provider.env, ...fleet.env });
  const destroy = () => root.must("destroy", "-auto-approve");

  const key = (more: object = {}) => ({
    name: "ana",
    data: sshKeyLine("ana@laptop"),
    username: "^root$",
    filter: { hostname: "^edge-01$" },
    ...more,
  });
  const rule = (more: object = {}) => ({
    action: "deny",
    priority: 5,
    source_ip: ".*",
    username: "^root$",
    filter: { hostname: ".*" },
    ...more,
  });
  /** Returns an expression in the form of a JSON configuration. */
  const ref = (expression: string) => `\${${expression}}`;
  /** Returns the output of Terraform without line breaks and frames. */
  const wordsIn = (output: string) => output.replaceAll(/[│\s]+/g, " ");
  const one = (type: string, values: object) => ({ resource: { [`gatehouse_${type}`]: { one: values } } });

  it("upgrade states of older versions, in which nested objects lack members, without a change in the plan", async () => {
    const rule = { login: "^deploy$", target: "^db-1:5432$" };
    const settings = { session_record: false, session_idle_minutes: 15, ssh_forwarding: [rule] };
    const configuration = (one: object) => ({ resource: { gatehouse_namespace: { one } } });
    root.write(configuration({ name: "upgraded", settings: { session_record: false } }));
    await root.apply();
    const file = join(root.folder, "terraform.tfstate");
    const state = JSON.parse(readFileSync(file, "utf8"));
    const { attributes } = state.resources[0].instances[0];
    expect(attributes.settings).toMatchObject({ device_proof: "optional", ssh_forwarding: [] });
    attributes.settings = { session_record: false, connection_announcement: "", removed_since: 1 };
    writeFileSync(file, JSON.stringify(state));
    const plan = await root.plan();
    expect([...changesIn(plan), ...(plan.resource_drift ?? [])]).toEqual([]);

    root.write(configuration({ name: "upgraded", settings }));
    expect(await root.changes()).toEqual(["gatehouse_namespace.one: update"]);
    await root.must("apply", "plan");
    expect(await root.changes()).toEqual([]);
    const [namespace] = (await fleet.client.getNamespaces()).filter(({ name }) => name === "upgraded");
    expect(namespace?.settings).toMatchObject({ sessionIdleMinutes: 15, sshForwarding: [rule] });
    await destroy();
  });

  it("are equal if only comments of keys or the letter case of addresses and names differ", async () => {
    const data = sshKeyLine();
    const all = (data: string, email: string, name: string) => ({
      resource: {
        gatehouse_public_key: { one: key({ data }) },
        gatehouse_member: { one: { email, role: "observer" } },
        gatehouse_namespace: { one: { name } },
      },
    });
    root.write(all(`${data} ana@laptop`, "Ana@Example.com", "Trials"));
    await root.apply();
    expect(await root.changes()).toEqual([]);
    root.write(all(`  ${data}   another comment `, "ana@example.com", "trials"));
    expect(await root.changes()).toEqual([]);
    await destroy();
  });

  it("can use values that are unknown before the apply", async () => {
    root.write({
      resource: {
        terraform_data: { pattern: { input: "^root$" }, tag: { input: "edge" } },
        gatehouse_device_tags: {
          one: { device: "edge-01", tags: [ref("terraform_data.tag.output"), "prod"] },
        },
        gatehouse_public_key: {
          one: key({
            username: ref("terraform_data.pattern.output"),
            filter: { tags: ref("gatehouse_device_tags.one.tags") },
          }),
        },
      },
    });
    expect(await root.changes()).toHaveLength(4);
    await root.must("apply", "plan");
    expect(await root.changes()).toEqual([]);
    await destroy();
  });

  it("can set the provider with values that are unknown before the apply", async () => {
    const settings = Object.fromEntries(
      Object.entries(fleet.env).map(([name, value]) => [name.replace("GATEHOUSE_", "").toLowerCase(), value]),
    );
    const { url, ...rest } = settings;
    root = new RootModule(testFolder(), provider.env);
    const configured = (more: object) => ({
      provider: { gatehouse: { ...rest, url: ref("terraform_data.url.output") } },
      resource: { terraform_data: { url: { input: url } }, ...more },
    });
    root.write(configured(one("public_key", key()).resource));
    await root.apply();
    expect(await root.changes()).toEqual([]);
    // The URL is unknown in this plan, so the provider cannot read the object. The object must stay in the state.
    const { output } = await root.run("plan", "-replace=terraform_data.url");
    expect(output).toContain("Not refreshed");
    expect(output).not.toContain("gatehouse_public_key.one will be");
    await root.must("destroy", "-auto-approve");
  });

  it("with errors are rejected before an apply, with the location and the allowed values", async () => {
    root.write({
      resource: {
        gatehouse_public_key: {
          one: key({ data: "ssh-ed25519 nonsense", filter: { hostname: "a", tags: ["x1x"] } }),
        },
        gatehouse_firewall_rule: { one: rule({ priority: 1.5, source_ip: "(" }) },
        gatehouse_member: { one: { email: "ana@example.com", role: "owner" } },
        gatehouse_device: { one: { device: "edge-01", name: "" } },
      },
    });
    const { code, output } = await root.run("validate");
    expect(code).toBe(1);
    const words = wordsIn(output);
    for (const text of [
      "data: ",
      "filter: must have exactly one of hostname and tags",
      "priority: ",
      "source_ip: ",
      "role: ",
      "name: must not be empty; omit it, or set null",
      "on main.tf.json line",
      "in resource.gatehouse_firewall_rule.one",
    ]) {
      expect(words).toContain(text);
    }
    expect(words).not.toContain("sourceIp");
  });

  it("that declare an object twice are rejected in the plan", async () => {
    const email = "ana@example.com";
    root.write({
      resource: { gatehouse_member: { one: { email, role: "observer" }, two: { email, role: "operator" } } },
    });
    const { code, output } = await root.run("plan");
    expect(code).toBe(1);
    expect(wordsIn(output)).toContain("manage the same object; remove one of the two");
  });

  it("that would remove an object of another resource are rejected in the plan", async () => {
    const declared = key();
    const namespace = { name: "trial" };
    root.write({
      resource: {
        gatehouse_public_key: { a: declared },
        gatehouse_namespace: { a: namespace },
        gatehouse_firewall_rule: { a: rule() },
      },
    });
    await root.apply();
    // The second configuration renames the resources without a moved block.
    const renamed = {
      resource: {
        gatehouse_public_key: { b: { ...declared, adopt: true } },
        gatehouse_namespace: { b: { ...namespace, adopt: true } },
        gatehouse_firewall_rule: { b: rule({ adopt: true }) },
      },
    };
    root.write(renamed);
    const { code, output } = await root.run("apply", "-auto-approve");
    expect(code).toBe(1);
    expect(output.match(/An object is both deleted and declared/g)).toHaveLength(3);
    expect(await fleet.client.getNamespaces()).toHaveLength(2);
    const types = Object.keys(renamed.resource);
    root.write({ ...renamed, moved: types.map((type) => ({ from: `${type}.a`, to: `${type}.b` })) });
    await root.apply();
    expect(await root.changes()).toEqual([]);
    // The state has two resources for one object, and the configuration removes one of these resources.
    const twice = { ...renamed.resource, gatehouse_public_key: { b: declared, c: declared } };
    const [found] = await fleet.client.getPublicKeys();
    root.write({ resource: twice, import: [{ to: "gatehouse_public_key.c", id: found?.fingerprint }] });
    const doubled = await root.run("apply", "-auto-approve");
    expect(wordsIn(doubled.output)).toContain("is in the state of two resources of this configuration");
    root.write(renamed);
    await destroy();
    expect(await fleet.client.getNamespaces()).toHaveLength(1);
  });

  it("replace objects with the flag -replace", async () => {
    root.write({
      resource: {
        gatehouse_public_key: { one: key() },
        gatehouse_member: { one: { email: "ana@example.com", role: "observer" } },
        gatehouse_namespace: { one: { name: "trial" } },
        gatehouse_device_tags: { one: { device: "edge-01", tags: ["prod"] } },
        gatehouse_firewall_rule: { one: rule() },
        gatehouse_tag: { one: { name: "edge" } },
      },
    });
    await root.apply();
    const all = root.state().resources.map(({ type }) => `${type}.one`);
    await root.apply(...all.map((address) => `-replace=${address}`));
    expect(await root.changes()).toEqual([]);
    await destroy();
  });

  it("adopt existing objects only with adopt or with an import", async () => {
    const { client } = fleet;
    await client.createFirewallRule({
      body: {
        action: "deny",
        priority: 5,
        sourceIp: ".*",
        username: "^root$",
        filter: { hostname: ".*" },
        active: true,
      },
    });
    const [existing] = await client.getFirewallRules();
    root.write(one("firewall_rule", rule()));
    const refused = await root.run("apply", "-auto-approve");
    expect(refused.code).toBe(1);
    const words = wordsIn(refused.output);
    expect(words).toContain(`${fleet.tenant}/${existing?.id} already exists`);
    expect(words).toContain("adopt = true");
    expect(await client.getFirewallRules()).toHaveLength(1);
    root.write(one("firewall_rule", rule({ adopt: true })));
    expect(wordsIn(await root.apply())).toContain(
      `adopted the existing object ${fleet.tenant}/${existing?.id}`,
    );
    expect(await root.changes()).toEqual([]);
    // If the configuration no longer sets adopt, nothing changes.
    root.write(one("firewall_rule", rule()));
    expect(await root.changes()).toEqual([]);
    await destroy();
    expect(await client.getFirewallRules()).toEqual([]);
  });

  it("report the service's cause if an overwrite fails, and errors with unmodified values", async () => {
    const { client } = fleet;
    await client.inviteMember({
      params: { tenant: fleet.tenant },
      body: { email: "ana@example.com", role: "observer" },
    });
    const [taken = "", other = ""] = await Promise.all([
      fleet.enroll("DeviceTags"),
      fleet.enroll("forceDestroy"),
    ]);
    const name = (device: string) => one("device", { device, name: "DeviceTags" });
    root.write(name(other));
    const refused = await root.run("apply", "-auto-approve");
    expect(refused.code).toBe(1);
    expect(wordsIn(refused.output)).toContain("Device already exists");
    expect(wordsIn(refused.output)).toContain("name: is taken");
    root.write({
      resource: {
        gatehouse_public_key: { one: key({ filter: { tags: ["DeviceTags"] } }) },
        gatehouse_member: { one: { email: "ana@example.com", role: "operator" } },
      },
    });
    const { output } = await root.run("apply", "-auto-approve");
    const words = wordsIn(output);
    expect(words).toMatch(/has the tag DeviceTags; .* list that resource in depends_on/);
    expect(words).toMatch(/role is "observer", declared "operator"; .* adopt = "overwrite" to update it/);
    const named = "forceDestroy: true of DeviceTags";
    root.write({ ...one("public_key", key()), import: [{ to: "gatehouse_public_key.one", id: named }] });
    expect(wordsIn((await root.run("plan")).output)).toContain(`has no such object: "${named}"; use the id`);
    for (const uid of [taken, other]) await client.deleteDevice({ params: { uid } });
    const [member] = (await client.getNamespace({ params: { tenant: fleet.tenant } })).members.filter(
      ({ role }) => role === "observer",
    );
    await client.removeMember({ params: { tenant: fleet.tenant, uid: member?.id ?? "" } });
  });

  it("import objects by natural names, in every namespace", async () => {
    root.write({
      resource: {
        gatehouse_public_key: { one: key() },
        gatehouse_member: { one: { email: "ana@example.com", role: "observer" } },
        gatehouse_device_tags: { one: { device: "edge-01", tags: ["prod"] } },
        gatehouse_firewall_rule: { one: rule() },
      },
    });
    await root.apply();
    const wanted = {
      gatehouse_public_key: "ana",
      gatehouse_member: "ANA@example.com",
      gatehouse_device_tags: `${fleet.tenant}/EDGE-01`,
      gatehouse_firewall_rule: "deny at priority 5",
    };
    const other = newModule();
    const configuration = JSON.parse(readFileSync(join(root.folder, "main.tf.json"), "utf8"));
    const imports = Object.entries(wanted).map(([type, id]) => ({ to: `${type}.one`, id }));
    other.write({ ...configuration, import: imports });
    expect((await other.changes()).sort()).toEqual(
      Object.keys(wanted)
        .sort()
        .map((type) => `${type}.one: no-op+import`),
    );
    other.write({ ...one("public_key", key()), import: [{ to: "gatehouse_public_key.one", id: "nobody" }] });
    const { output } = await other.run("plan");
    expect(wordsIn(output)).toContain('has no such object: "nobody"');
    await destroy();
  });

  it("detect manual changes and deletions", async () => {
    root.write({
      resource: { ...one("public_key", key()).resource, ...one("firewall_rule", rule()).resource },
    });
    await root.apply();
    const quiet = ["plan", "-refresh-only", "-detailed-exitcode"];
    expect((await root.run(...quiet)).code).toBe(0);
    const [found] = await fleet.client.getPublicKeys();
    const params = { fingerprint: found?.fingerprint ?? "" };
    await fleet.client.updatePublicKey({
      params,
      body: { name: "eve", username: ".*", filter: { hostname: ".*" } },
    });
    const [existing] = await fleet.client.getFirewallRules();
    await fleet.client.deleteFirewallRule({ params: { id: existing?.id ?? "" } });
    expect((await root.run(...quiet)).code).toBe(2);
    expect((await root.changes()).sort()).toEqual([
      "gatehouse_firewall_rule.one: create",
      "gatehouse_public_key.one: update",
    ]);
    await root.must("apply", "plan");
    expect(await root.changes()).toEqual([]);
    await destroy();
  });

  it("send the kind and the workspace of a declaring resource to the service", async () => {
    root.write(one("public_key", key()));
    await root.apply();
    const [{ declaredBy } = {}] = await fleet.client.getPublicKeys();
    // Does not check `project`. It is the name of the provider's working directory, and the test, not Terraform,
    // started the provider.
    expect(declaredBy).toMatchObject({ stack: "default", resource: "gatehouse_public_key" });
    await destroy();
  });

  it("can move and forget resources, and use states of other versions", async () => {
    root.write(one("public_key", key()));
    await root.apply();
    const file = join(root.folder, "terraform.tfstate");
    const state = JSON.parse(readFileSync(file, "utf8"));
    const [instance] = state.resources[0].instances;
    const { created_at: _createdAt, adopt: _adopt, ...attributes } = instance.attributes;
    instance.attributes = { ...attributes, of_another_version: 1e300 };
    writeFileSync(file, JSON.stringify({ ...state, serial: state.serial + 1 }));
    const { one: declared } = JSON.parse(readFileSync(join(root.folder, "main.tf.json"), "utf8")).resource
      .gatehouse_public_key;
    root.write({
      resource: { gatehouse_public_key: { two: { ...declared, adopt: true } } },
      moved: [{ from: "gatehouse_public_key.one", to: "gatehouse_public_key.two" }],
    });
    expect(await root.changes()).toEqual([]);
    await root.apply();
    root.write({
      resource: { gatehouse_tag: { two: { name: "edge" } } },
      moved: [{ from: "gatehouse_public_key.two", to: "gatehouse_tag.two" }],
    });
    expect(wordsIn((await root.run("plan")).output)).toContain("to gatehouse_tag; remove it from the state");
    root.write({ removed: [{ from: "gatehouse_public_key.two", lifecycle: { destroy: false } }] });
    await root.apply();
    expect(await fleet.client.getPublicKeys()).toHaveLength(1);
    root.write({ ...one("public_key", declared), import: [{ to: "gatehouse_public_key.one", id: "ana" }] });
    await root.apply();
    await destroy();
  });

  it("rotate an API key in place, keep the old key for its overlap, and store no secret in a state or plan", async () => {
    const secrets = [randomUUID(), randomUUID(), randomUUID()] as const;
    const of = (secret: string, version: number, more: object = {}) =>
      one("api_key", { name: "pipeline", valid_days: 30, key_wo: secret, key_wo_version: version, ...more });
    const opens = async (secret: string) => {
      const client = createClient({ url: fleet.service.url, credential: apiKeyCredential(secret) });
      return client.getTags().then(
        () => true,
        () => false,
      );
    };
    root.write(one("api_key", { name: "pipeline", valid_days: 30 }));
    expect((await root.run("plan")).output).toContain("key_wo: is required to create the resource");
    root.write(of(secrets[0], 1));
    await root.apply();
    expect(await root.changes()).toEqual([]);
    // A new secret with the same version is no change, since Terraform does not store the secret.
    root.write(of(secrets[1], 1));
    expect(await root.changes()).toEqual([]);
    root.write(of(secrets[1], 2, { overlap: 2 }));
    expect(await root.changes()).toEqual(["gatehouse_api_key.one: update"]);
    const plan = readFileSync(join(root.folder, "plan"));
    await root.must("apply", "plan");
    expect(await root.changes()).toEqual([]);
    expect([await opens(secrets[0]), await opens(secrets[1])]).toEqual([true, true]);
    root.write(of(secrets[2], 3));
    await root.apply();
    // Without an overlap, the update revokes the old keys at once.
    expect(await Promise.all(secrets.map(opens))).toEqual([false, false, true]);
    await destroy();
    expect(await fleet.client.listApiKeys()).toEqual([]);
    const written = `${plan.toString("latin1")}${readFileSync(join(root.folder, "terraform.tfstate.backup"), "utf8")}`;
    for (const secret of secrets) expect(written).not.toContain(secret);
  });

  it("with an invalid secret that is unknown in the plan, for example from uuid(), fail in the apply and create no key", async () => {
    const secret = "b1946ac9-2e37-1c0e-9f5d-0123456789ab";
    root.write({
      resource: {
        terraform_data: { secret: { input: secret } },
        gatehouse_api_key: { one: { valid_days: 30, key_wo: ref("terraform_data.secret.output") } },
      },
    });
    const { code, output } = await root.run("apply", "-auto-approve");
    expect(code).toBe(1);
    expect(output).toContain("(write-only attribute)");
    expect(wordsIn(output)).toMatch(
      /key_wo: must be a UUID of version 4; create one with the command uuidgen/,
    );
    expect(await fleet.client.listApiKeys()).toEqual([]);
  });

  it("can call functions, and read existing objects", async () => {
    const data = sshKeyLine("x");
    await fleet.client.createPublicKey({
      body: {
        name: "bob",
        data: Buffer.from(data).toString("base64"),
        username: ".*",
        filter: { hostname: ".*" },
      },
    });
    const [found] = await fleet.client.getPublicKeys();
    root.write({
      data: {
        gatehouse_devices: { all: {}, none: { tags: ["nothing"] } },
        gatehouse_namespace: { here: {} },
        gatehouse_members: { all: {} },
        gatehouse_public_keys: { all: {} },
        gatehouse_firewall_rules: { all: {} },
        gatehouse_api_keys: { all: {} },
        gatehouse_tags: { all: {} },
        gatehouse_public_key: { bob: { selector: "bob" } },
        gatehouse_device: { edge: { selector: "edge-01" } },
        gatehouse_access: { root: { logins: ["root"] } },
      },
      output: {
        fingerprint: { value: ref(`provider::gatehouse::key_fingerprint("${data}")`) },
        login: { value: ref('provider::gatehouse::login("root", "ana")') },
        hostname: { value: ref('provider::gatehouse::hostname("Edge-01")') },
        cidr: { value: ref('provider::gatehouse::cidr("10.0.0.0/8", "192.0.2.7")') },
        devices: { value: ref("data.gatehouse_devices.all.devices[*].name") },
        none: { value: ref("data.gatehouse_devices.none.devices") },
        namespace: { value: ref("data.gatehouse_namespace.here.name") },
        owner: { value: ref("data.gatehouse_members.all.members[0].role") },
        keys: { value: ref("data.gatehouse_public_keys.all.public_keys[*].fingerprint") },
        id: { value: ref("data.gatehouse_public_key.bob.id") },
        uid: { value: ref("data.gatehouse_device.edge.uid") },
        grants: { value: ref("data.gatehouse_access.root.grants[0].key") },
      },
    });
    await root.apply();
    const outputs = JSON.parse(await root.must("output", "-json"));
    const values = Object.fromEntries(
      Object.entries<{ value: unknown }>(outputs).map(([name, { value }]) => [name, value]),
    );
    const [device] = await fleet.client.getDevices();
    expect(values).toEqual({
      fingerprint: found?.fingerprint,
      login: "^(ana|root)$",
      hostname: "^edge-01$",
      cidr: expect.stringMatching(/^\^\(10\\\..*192\\\.0\\\.2\\\.7\)\$$/),
      devices: ["edge-01"],
      none: [],
      namespace: "admin",
      owner: "owner",
      keys: [found?.fingerprint],
      id: `${fleet.tenant}/${found?.fingerprint}`,
      uid: device?.uid,
      grants: found?.fingerprint,
    });
    root.write({ output: { wrong: { value: ref('provider::gatehouse::cidr("10.0.0.1/8")') } } });
    expect(wordsIn((await root.run("plan")).output)).toContain("host bits set");
    await fleet.client.deletePublicKey({ params: { fingerprint: found?.fingerprint ?? "" } });
  });
});
