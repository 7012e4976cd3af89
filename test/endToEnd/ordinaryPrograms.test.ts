import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { sshKeyLine } from "../provider/support/programs.ts";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { changesOf, engines, Stack } from "../support/gatehouse.ts";
import { policyEnv } from "../support/policy.ts";
import { PolicyProgram } from "../support/policyProgram.ts";

vi.setConfig({ testTimeout: 180_000 });

const DATA = sshKeyLine("ana");

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
  new PublicKey("late", { name: "late", data: ${JSON.stringify(sshKeyLine("late"))}, username: "^l$", filter: { hostname: id } }, { parent: outer });
});
`;

describe.each(engines)("ordinary programs, by the $label", ({ engine, available }) => {
  let fleet: Fleet;
  let program: PolicyProgram;

  beforeAll(async () => {
    fleet = await startFleet();
    for (const name of ["web-01", "fleet", "second"]) await fleet.enrol(name);
    program = new PolicyProgram();
  });
  afterAll(async () => {
    program?.remove();
    await fleet?.stop();
  });
  const newStack = (folder: string) =>
    new Stack({ program: folder, folder: program.states, engine, env: fleet.env });

  it.skipIf(!available)("make components in components, whose children depend on each other", async () => {
    const tree = new PolicyProgram();
    try {
      tree.write("index.js", TREE);
      const stack = newStack(tree.folder);
      await stack.result(["up", "--yes", "--skip-preview"]);
      const rules = await fleet.client.getFirewallRules({ query: { perPage: 100 } });
      expect(rules.map(({ priority, username }) => `${priority} ${username}`).sort()).toEqual(
        [100, 101, 102, 110, 111, 112, 120, 200, 300, 301, 302, 310, 311, 312, 320].map(
          (priority) => `${priority} ^transformed$`,
        ),
      );
      expect(changesOf(await stack.result(["up", "--yes"]))).toEqual([]);
      await stack.result(["destroy", "--yes"]);
      expect(await fleet.client.getFirewallRules()).toEqual([]);
    } finally {
      tree.remove();
    }
  });

  it.skipIf(!available)("leave what they ignore as it was made by hand, also after a refresh", async () => {
    const stack = newStack(program.folder);
    const key = (name: string, options: object = {}) => ({
      type: "PublicKey",
      args: { name: "ana", data: DATA, username: name, filter: { hostname: "^web" } },
      options,
    });
    const ignored = policyEnv({ ana: key("^root$", { ignoreChanges: ["username"] }) });
    await stack.result(["up", "--yes"], ignored);
    const ana = async () => (await fleet.client.getPublicKeys()).find(({ name }) => name === "ana");
    const { fingerprint = "" } = (await ana()) ?? {};
    await fleet.client.updatePublicKey({
      params: { fingerprint },
      body: { name: "ana", username: "^by-hand$", filter: { hostname: "^web" } },
    });
    await stack.result(["refresh", "--yes"], ignored);
    expect(changesOf(await stack.result(["up", "--yes"], ignored))).toEqual([]);
    // Another change leaves it, too.
    const renamed = key("^root$", { ignoreChanges: ["username"] });
    const more = policyEnv({ ana: { ...renamed, args: { ...renamed.args, filter: { hostname: "^db" } } } });
    expect(changesOf(await stack.result(["up", "--yes"], more))).toEqual(["update ana filter.hostname"]);
    expect((await ana())?.username).toBe("^by-hand$");
    // Ignored no more, the program's value counts.
    const own = policyEnv({ ana: { ...renamed, options: {} } });
    expect(changesOf(await stack.result(["up", "--yes"], own))).toEqual([
      "update ana filter.hostname username",
    ]);
    expect((await ana())?.username).toBe("^root$");
  });
});
