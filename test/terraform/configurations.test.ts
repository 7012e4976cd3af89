import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { apiKeyCredential, createClient } from "../../sdk/index.ts";
import { changeKey, createKey, fingerprintOf, memberId, startFleet } from "../support/fleet.ts";
import { keyData } from "../support/policy.ts";
import {
  changesIn,
  hasTerraform,
  keyArguments,
  LABEL,
  RootModule,
  ref,
  resources,
  ruleArguments,
  sharedTerraform,
  unframed,
} from "./support/terraform.ts";

// Long tests apply several configurations, and test/provider covers their facts through Terraform's protocol.
describe.runIf(hasTerraform)(`configurations of ${LABEL}`, () => {
  const fleet = sharedTerraform(async () => {
    const started = await startFleet(["ana"]);
    await started.enroll("edge-01");
    return started;
  });
  let root: RootModule;
  beforeEach(() => {
    root = fleet.newModule();
  });
  // Deletes objects that a failed test left, so that they do not affect other tests.
  afterEach(() => fleet.clear());

  const key = (more: object = {}) => keyArguments({ filter: { hostname: "^edge-01$" }, ...more });
  const rule = (more: object = {}) => ruleArguments({ priority: 5, ...more });
  /** Returns the configuration of one resource. */
  const one = (kind: string, values: object) => resources({ [kind]: { one: values } });

  it("upgrade states of older versions, in which nested objects lack members, without a change in the plan", {
    tags: ["long"],
  }, async () => {
    const rule = { login: "^deploy$", target: "^db-1:5432$" };
    const settings = { session_record: false, session_idle_minutes: 15, ssh_forwarding: [rule] };
    await root.applied(one("namespace", { name: "upgraded", settings: { session_record: false } }));
    const state = root.state();
    const attributes = (state.resources[0]?.instances[0]?.attributes ?? {}) as { settings?: object };
    expect(attributes.settings).toMatchObject({ device_proof: "optional", ssh_forwarding: [] });
    attributes.settings = { session_record: false, connection_announcement: "", removed_since: 1 };
    root.writeState(state, state.serial);
    const plan = await root.plan();
    expect([...changesIn(plan), ...(plan.resource_drift ?? [])]).toEqual([]);

    root.write(one("namespace", { name: "upgraded", settings }));
    expect(await root.changes()).toEqual(["gatehouse_namespace.one: update"]);
    await root.must("apply", "plan");
    expect(await root.changes()).toEqual([]);
    const [namespace] = (await fleet.client.getNamespaces()).filter(({ name }) => name === "upgraded");
    expect(namespace?.settings).toMatchObject({ sessionIdleMinutes: 15, sshForwarding: [rule] });
    await root.destroy();
  });

  it("can use values that are unknown before the apply", async () => {
    const { resource } = resources({
      device_tags: { one: { device: "edge-01", tags: [ref("terraform_data.tag.output"), "prod"] } },
      public_key: {
        one: key({
          username: ref("terraform_data.pattern.output"),
          filter: { tags: ref("gatehouse_device_tags.one.tags") },
        }),
      },
    });
    const values = { pattern: { input: "^root$" }, tag: { input: "edge" } };
    root.write({ resource: { ...resource, terraform_data: values } });
    expect(await root.changes()).toHaveLength(4);
    await root.must("apply", "plan");
    expect(await root.changes()).toEqual([]);
    await root.destroy();
  });

  it("can set the provider with values that are unknown before the apply", async () => {
    const settings = Object.fromEntries(
      Object.entries(fleet.env).map(([name, value]) => [name.replace("GATEHOUSE_", "").toLowerCase(), value]),
    );
    const { url, ...rest } = settings;
    root = new RootModule(root.folder, { TF_REATTACH_PROVIDERS: root.env.TF_REATTACH_PROVIDERS ?? "" });
    await root.applied({
      provider: { gatehouse: { ...rest, url: ref("terraform_data.url.output") } },
      resource: { terraform_data: { url: { input: url } }, ...one("public_key", key()).resource },
    });
    expect(await root.changes()).toEqual([]);
    // The URL is unknown in this plan, so the provider cannot read the object. The object must stay in the state.
    const { output } = await root.run("plan", "-replace=terraform_data.url");
    expect(output).toContain("Not refreshed");
    expect(output).not.toContain("gatehouse_public_key.one will be");
    await root.destroy();
  });

  it("with errors are rejected before an apply, with the location and the allowed values", async () => {
    root.write(
      resources({
        public_key: { one: key({ data: "ssh-ed25519 nonsense", filter: { hostname: "a", tags: ["x1x"] } }) },
        firewall_rule: { one: rule({ priority: 1.5, source_ip: "(" }) },
        member: { one: { email: "ana@example.com", role: "owner" } },
        device: { one: { device: "edge-01", name: "" } },
      }),
    );
    const words = await root.rejected("validate");
    for (const text of [
      "data must contain a complete ssh-ed25519 key",
      "filter must have exactly one of hostname and tags",
      "priority must be a whole number",
      "source_ip must be a regular expression",
      "role must be one of",
      "name must not be empty; omit it, or set null",
      "on main.tf.json line",
      "in resource.gatehouse_firewall_rule.one",
    ]) {
      expect(words).toContain(text);
    }
    expect(words).not.toContain("sourceIp");
  });

  it("that would remove an object of another resource are rejected in the plan", async () => {
    const namespace = { name: "trial" };
    const all = (name: string, adopt?: true) =>
      resources({
        public_key: { [name]: key({ adopt }) },
        namespace: { [name]: { ...namespace, adopt } },
        firewall_rule: { [name]: rule({ adopt }) },
      });
    await root.applied(all("a"));
    // The second configuration renames the resources without a moved block.
    const renamed = all("b", true);
    root.write(renamed);
    const output = await root.rejected("apply", "-auto-approve");
    expect(output.match(/An object is both deleted and declared/g)).toHaveLength(3);
    expect(await fleet.client.getNamespaces()).toHaveLength(2);
    const types = Object.keys(renamed.resource);
    await root.applied({ ...renamed, moved: types.map((type) => ({ from: `${type}.a`, to: `${type}.b` })) });
    expect(await root.changes()).toEqual([]);
    // The state has two resources for one object, and the configuration removes one of these resources.
    const twice = { ...renamed.resource, gatehouse_public_key: { b: key(), c: key() } };
    const id = await fingerprintOf(fleet.client, "ana");
    root.write({ resource: twice, import: [{ to: "gatehouse_public_key.c", id }] });
    expect(await root.rejected("apply", "-auto-approve")).toContain(
      "is in the state of two resources of this configuration",
    );
    root.write(renamed);
    await root.destroy();
    expect(await fleet.client.getNamespaces()).toHaveLength(1);
  });

  it("replace objects with the flag -replace", { tags: ["long"] }, async () => {
    await root.applied(
      resources({
        public_key: { one: key() },
        member: { one: { email: "ana@example.com", role: "observer" } },
        namespace: { one: { name: "trial" } },
        device_tags: { one: { device: "edge-01", tags: ["prod"] } },
        firewall_rule: { one: rule() },
        tag: { one: { name: "edge" } },
      }),
    );
    const all = root.state().resources.map(({ type }) => `${type}.one`);
    await root.apply(...all.map((address) => `-replace=${address}`));
    expect(await root.changes()).toEqual([]);
    await root.destroy();
  });

  it("adopt existing objects only with adopt or with an import", async () => {
    const { client } = fleet;
    const { source_ip: sourceIp, ...body } = rule({ active: true });
    await client.createFirewallRule({ body: { ...body, sourceIp } as never });
    const [existing] = await client.getFirewallRules();
    const id = `${fleet.tenant}/${existing?.id}`;
    root.write(one("firewall_rule", rule()));
    const words = await root.rejected("apply", "-auto-approve");
    expect(words).toContain(`${id} already exists`);
    expect(words).toContain("adopt = true");
    expect(await client.getFirewallRules()).toHaveLength(1);
    const adopted = await root.applied(one("firewall_rule", rule({ adopt: true })));
    expect(unframed(adopted)).toContain(`adopted the existing object ${id}`);
    expect(await root.changes()).toEqual([]);
    // If the configuration no longer sets adopt, nothing changes.
    root.write(one("firewall_rule", rule()));
    expect(await root.changes()).toEqual([]);
    await root.destroy();
    expect(await client.getFirewallRules()).toEqual([]);
  });

  it("report the service's cause if an overwrite fails, and errors with unmodified values", {
    tags: ["long"],
  }, async () => {
    const { client } = fleet;
    const { tenant } = fleet;
    const email = "ana@example.com";
    await client.inviteMember({ params: { tenant }, body: { email, role: "observer" } });
    const [taken, other] = [await fleet.enroll("DeviceTags"), await fleet.enroll("forceDestroy")];
    root.write(one("device", { device: other, name: "DeviceTags" }));
    const refused = await root.rejected("apply", "-auto-approve");
    expect(refused).toContain("Device already exists");
    expect(refused).toContain("choose a different name");
    root.write(
      resources({
        public_key: { one: key({ filter: { tags: ["DeviceTags"] } }) },
        member: { one: { email, role: "operator" } },
      }),
    );
    const words = await root.rejected("apply", "-auto-approve");
    expect(words).toMatch(/has the tag DeviceTags\. .* list that resource in depends_on/);
    expect(words).toMatch(
      /[Rr]ole is "observer", declared "operator"[.;] .* adopt = "overwrite" to update it/,
    );
    const named = "forceDestroy: true of DeviceTags";
    root.write({ ...one("public_key", key()), import: [{ to: "gatehouse_public_key.one", id: named }] });
    expect(await root.rejected("plan")).toContain(`has no such object: "${named}". Use the id`);
    for (const uid of [taken, other]) await client.deleteDevice({ params: { uid } });
    await client.removeMember({ params: { tenant, uid: await memberId(fleet, email) } });
  });

  it("import objects by natural names, in every namespace", async () => {
    const configuration = resources({
      public_key: { one: key() },
      member: { one: { email: "ana@example.com", role: "observer" } },
      device_tags: { one: { device: "edge-01", tags: ["prod"] } },
      firewall_rule: { one: rule() },
    });
    await root.applied(configuration);
    const wanted = {
      gatehouse_device_tags: `${fleet.tenant}/EDGE-01`,
      gatehouse_firewall_rule: "deny at priority 5",
      gatehouse_member: "ANA@example.com",
      gatehouse_public_key: "ana",
    };
    const other = fleet.newModule();
    const imports = Object.entries(wanted).map(([type, id]) => ({ to: `${type}.one`, id }));
    other.write({ ...configuration, import: imports });
    expect((await other.changes()).sort()).toEqual(
      Object.keys(wanted).map((type) => `${type}.one: no-op+import`),
    );
    other.write({ ...one("public_key", key()), import: [{ to: "gatehouse_public_key.one", id: "no-key" }] });
    expect(await other.rejected("plan")).toContain('has no such object: "no-key"');
    await root.destroy();
  });

  it("detect manual changes and deletions", { tags: ["long"] }, async () => {
    await root.applied(resources({ public_key: { one: key() }, firewall_rule: { one: rule() } }));
    const quiet = ["plan", "-refresh-only", "-detailed-exitcode"];
    expect((await root.run(...quiet)).code).toBe(0);
    await changeKey(fleet.client, "ana", { name: "eve", username: ".*", filter: { hostname: ".*" } });
    const [existing] = await fleet.client.getFirewallRules();
    await fleet.client.deleteFirewallRule({ params: { id: existing?.id ?? "" } });
    expect((await root.run(...quiet)).code).toBe(2);
    expect((await root.changes()).sort()).toEqual([
      "gatehouse_firewall_rule.one: create",
      "gatehouse_public_key.one: update",
    ]);
    await root.must("apply", "plan");
    expect(await root.changes()).toEqual([]);
    await root.destroy();
  });

  it("send the kind and the workspace of a declaring resource to the service", async () => {
    await root.applied(one("public_key", key()));
    const [{ declaredBy } = {}] = await fleet.client.getPublicKeys();
    // Does not check `project`. It is the name of the provider's working directory, and the test, not Terraform,
    // started the provider.
    expect(declaredBy).toMatchObject({ stack: "default", resource: "gatehouse_public_key" });
    await root.destroy();
  });

  it("can move and forget resources, and use states of other versions", async () => {
    await root.applied(one("public_key", key()));
    const state = root.state();
    const instances = state.resources[0]?.instances ?? [];
    expect(instances).toHaveLength(1);
    for (const instance of instances) {
      const { created_at: _createdAt, adopt: _adopt, ...attributes } = instance.attributes;
      instance.attributes = { ...attributes, of_another_version: 1e300 };
    }
    root.writeState(state);
    root.write({
      ...resources({ public_key: { two: key({ adopt: true }) } }),
      moved: [{ from: "gatehouse_public_key.one", to: "gatehouse_public_key.two" }],
    });
    expect(await root.changes()).toEqual([]);
    await root.apply();
    root.write({
      resource: { gatehouse_tag: { two: { name: "edge" } } },
      moved: [{ from: "gatehouse_public_key.two", to: "gatehouse_tag.two" }],
    });
    expect(await root.rejected("plan")).toContain("to gatehouse_tag; remove it from the state");
    await root.applied({ removed: [{ from: "gatehouse_public_key.two", lifecycle: { destroy: false } }] });
    expect(await fleet.client.getPublicKeys()).toHaveLength(1);
    const imports = [{ to: "gatehouse_public_key.one", id: "ana" }];
    await root.applied({ ...one("public_key", key()), import: imports });
    await root.destroy();
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
    expect(await root.rejected("plan")).toContain("key_wo is required to create the resource");
    await root.applied(of(secrets[0], 1));
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
    await root.applied(of(secrets[2], 3));
    // Without an overlap, the update revokes the old keys at once.
    expect(await Promise.all(secrets.map(opens))).toEqual([false, false, true]);
    await root.destroy();
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
    const words = await root.rejected("apply", "-auto-approve");
    expect(words).toContain("(write-only attribute)");
    expect(words).toMatch(/key_wo must be a UUID of version 4\. Create one with the command uuidgen/);
    expect(await fleet.client.listApiKeys()).toEqual([]);
  });

  it("can call functions, and read existing objects", async () => {
    const fingerprint = await createKey(fleet.client, "bob");
    const data = keyData("bob");
    await root.applied({
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
    const outputs = JSON.parse(await root.must("output", "-json"));
    const values = Object.fromEntries(
      Object.entries<{ value: unknown }>(outputs).map(([name, { value }]) => [name, value]),
    );
    const [device] = await fleet.client.getDevices();
    expect(values).toEqual({
      fingerprint,
      login: "^(ana|root)$",
      hostname: "^edge-01$",
      cidr: expect.stringMatching(/^\^\(10\\\..*192\\\.0\\\.2\\\.7\)\$$/),
      devices: ["edge-01"],
      none: [],
      namespace: "admin",
      owner: "owner",
      keys: [fingerprint],
      id: `${fleet.tenant}/${fingerprint}`,
      uid: device?.uid,
      grants: fingerprint,
    });
    root.write({ output: { wrong: { value: ref('provider::gatehouse::cidr("10.0.0.1/8")') } } });
    expect(await root.rejected("plan")).toContain("host bits set");
  });
});
