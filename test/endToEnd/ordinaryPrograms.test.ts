/**
 * Slow: each test runs several commands. test/engine covers components and resource options.
 *
 * @module-tag long
 */
import { mkdirSync, symlinkSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, it, vi } from "vitest";
import { createClient, passwordCredential } from "../../sdk/index.ts";
import { changeKey } from "../support/fleet.ts";
import { changesOf, describeEngines } from "../support/gatehouse.ts";
import { keyData, policyEnv, publicKey } from "../support/policy.ts";
import { testProgram } from "../support/policyProgram.ts";
import { sharedFleet } from "../support/sharedFleet.ts";

vi.setConfig({ testTimeout: 180_000 });

const UP = ["up", "--yes", "--skip-preview"];

/** A program as users write them: components in components, with a transformation, aliases and dependencies. */
const TREE = `
const pulumi = require("@pulumi/pulumi");
const { FirewallRule, Tag, DeviceTags, PublicKey } = require("@gatehouse-access/provider");

const rule = (priority, tags) => ({
  action: "deny", priority, sourceIp: ".*", username: "^y$", filter: tags ? { tags } : { hostname: "^z$" },
});
class Inner extends pulumi.ComponentResource {
  constructor(name, first, options) {
    super("test:index:Inner", name, {}, options);
    const one = new FirewallRule(name + "-one", rule(first), { parent: this });
    new FirewallRule(name + "-two", rule(first + 1), { parent: this });
    new FirewallRule(name + "-three", rule(first + 2), { parent: this, dependsOn: one });
    this.rule = one;
    this.registerOutputs({ id: one.id });
  }
}
class Outer extends pulumi.ComponentResource {
  constructor(name, first, options) {
    super("test:index:Outer", name, {}, options);
    this.inner = new Inner(name + "-a", first, { parent: this });
    new Inner(name + "-b", first + 10, { parent: this, dependsOn: this.inner });
    new Tag(name + "-tag", { name: name + "0" }, { parent: this });
    new FirewallRule(name + "-tagged", rule(first + 20, [name]), { parent: this });
    new DeviceTags(name + "-web", { device: name, tags: [name] }, { parent: this });
  }
}
pulumi.runtime.registerStackTransformation(({ type, props, opts }) =>
  type.endsWith(":FirewallRule") ? { props: { ...props, username: "^transformed$" }, opts } : undefined);
const outer = new Outer("fleet", 100, {
  transformations: [({ props, opts }) => ({ props, opts })],
  aliases: [{ name: "former" }],
});
new FirewallRule("last", rule(200), { dependsOn: outer, aliases: [{ name: "first" }] });
new Outer("second", 300, { dependsOn: outer }).inner.rule.id.apply((id) => {
  new PublicKey("late", { name: "late", data: ${JSON.stringify(keyData("late"))}, username: "^l$", filter: { hostname: id } }, { parent: outer });
});
`;

const PLUGIN = fileURLToPath(new URL("../../provider/bin/pulumi-resource-gatehouse.js", import.meta.url));

/** A program that declares provider instances with their own credential. */
const INSTANCES = `
const pulumi = require("@pulumi/pulumi");
const { URL: url, OWN_PASSWORD, KEYS } = process.env;
for (const [name, data] of Object.entries(JSON.parse(KEYS))) {
  const settings = { url, username: "rotator", password: pulumi.secret(OWN_PASSWORD) };
  const provider = new pulumi.ProviderResource("gatehouse", "of-" + name, settings);
  const args = { name, data, username: "^root$", filter: { hostname: ".*" } };
  new pulumi.CustomResource("gatehouse:index:PublicKey", name, args, { provider });
}
`;

describeEngines("ordinary programs", {}, (engine) => {
  const fleet = sharedFleet(["rotator"]);

  beforeAll(async () => {
    for (const name of ["web-01", "fleet", "second"]) await fleet.enroll(name);
  });
  it("create nested components whose children depend on each other", async () => {
    const tree = testProgram();
    tree.write("index.js", TREE);
    const stack = tree.stack({ engine, env: fleet.env });
    await stack.result(UP);
    const rules = await fleet.client.getFirewallRules({ query: { perPage: 100 } });
    expect(rules.map(({ priority, username }) => `${priority} ${username}`).sort()).toEqual(
      [100, 101, 102, 110, 111, 112, 120, 200, 300, 301, 302, 310, 311, 312, 320].map(
        (priority) => `${priority} ^transformed$`,
      ),
    );
    expect(changesOf(await stack.result(["up", "--yes"]))).toEqual([]);
    await stack.result(["destroy", "--yes"]);
    expect(await fleet.client.getFirewallRules()).toEqual([]);
  });

  it("keep manual changes of fields that they ignore, also after a refresh", async () => {
    const stack = testProgram().stack({ engine, env: fleet.env });
    const key = (username: string, options: object = {}) => ({
      ...publicKey("ana", username, { hostname: "^web" }),
      options,
    });
    const ignored = policyEnv({ ana: key("^root$", { ignoreChanges: ["username"] }) });
    await stack.result(UP, ignored);
    const ana = async () => (await fleet.client.getPublicKeys()).find(({ name }) => name === "ana");
    await changeKey(fleet.client, "ana", { username: "^by-hand$" });
    await stack.result(["refresh", "--yes"], ignored);
    expect(changesOf(await stack.result(["up", "--yes"], ignored))).toEqual([]);
    // An update of another input keeps the live value of the input in `ignoreChanges`.
    const renamed = key("^root$", { ignoreChanges: ["username"] });
    const more = policyEnv({ ana: { ...renamed, args: { ...renamed.args, filter: { hostname: "^db" } } } });
    expect(changesOf(await stack.result(UP, more))).toEqual(["update ana filter.hostname"]);
    expect((await ana())?.username).toBe("^by-hand$");
    // Without `ignoreChanges`, up restores the program's value.
    const own = policyEnv({ ana: { ...renamed, options: {} } });
    expect(changesOf(await stack.result(UP, own))).toEqual(["update ana filter.hostname username"]);
    expect((await ana())?.username).toBe("^root$");
  });

  // Skipped with the embedded engine, which does not support provider instances.
  it.runIf(engine === "cli")("use the program's credential, not the state's", async () => {
    const rotated = testProgram();
    const url = fleet.service.url;
    const credential = passwordCredential({ username: "rotator", password: "correct-horse" });
    const client = createClient({ url, credential });
    try {
      rotated.write("index.js", INSTANCES);
      const bin = join(rotated.states, "bin");
      mkdirSync(bin);
      symlinkSync(PLUGIN, join(bin, "pulumi-resource-gatehouse"));
      const { tenantId } = await client.createNamespace({ body: { name: "rotator" } });
      const stack = rotated.stack({
        engine,
        env: {
          GATEHOUSE_URL: url,
          GATEHOUSE_USERNAME: "rotator",
          GATEHOUSE_TENANT: tenantId,
          URL: url,
          KEYS: JSON.stringify({ a: keyData("a"), b: keyData("b") }),
          PULUMI_HOME: join(rotated.states, "home"),
          PATH: [bin, process.env.PATH].join(delimiter),
        },
      });
      const withPassword = (password: string) => ({ GATEHOUSE_PASSWORD: password, OWN_PASSWORD: password });
      await stack.result(UP, withPassword("correct-horse"));
      const { userId = "" } = await client.identity();
      await client.updateUserPassword({
        params: { id: userId },
        body: { currentPassword: "correct-horse", newPassword: "battery-staple" },
      });
      const now = withPassword("battery-staple");
      expect((await stack.run(["review"], now)).code).toBe(0);
      expect(changesOf(await stack.result(["drift"], now))).toEqual([]);
      expect(changesOf(await stack.result(["refresh", "--yes"], now))).toEqual([]);
      await stack.result(["destroy", "--yes"], now);
    } finally {
      await client.close();
    }
  });
});
