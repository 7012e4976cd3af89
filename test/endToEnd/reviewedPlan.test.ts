/**
 * Slow: the tests continue one stack with many commands. test/review/guards/savedPlan.test.ts covers the comparison.
 *
 * @module-tag long
 */
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import type { PlanDifference } from "../../provider/plan/saved/planDifferences.ts";
import type { Review } from "../../provider/review/report/review.ts";
import { describeEngines, type Stack } from "../support/gatehouse.ts";
import { firewallRule, type Policy, policyEnv, publicKey } from "../support/policy.ts";
import { sharedProgram } from "../support/policyProgram.ts";
import { sharedFleet } from "../support/sharedFleet.ts";

const policyOf = (username: string, priority = 10) => ({
  ana: publicKey("ana", username, { hostname: "^web-" }),
  closed: firewallRule("deny", priority, { username: "^nobody$", filter: { hostname: "^web-2$" } }),
});

// The tests share one stack. Each test continues where the previous one ended.
describeEngines("a saved plan", { timeout: 180_000 }, (engine) => {
  const fleet = sharedFleet();
  const program = sharedProgram();
  let stack: Stack;
  let plan: string;

  beforeAll(async () => {
    await fleet.enroll("web-1");
    plan = join(program.states, "plan.json");
    stack = program.stack({ engine, env: fleet.env });
    await stack.apply(policyOf("^root$"));
  });

  const save = async (policy: Policy, args: readonly string[] = [], code = 0) => {
    const run = await stack.run(["review", "--save", plan, ...args], policyEnv(policy));
    expect([run.code, run.stderr]).toEqual([code, expect.any(String)]);
    return run;
  };
  const up = (policy: Policy, args: readonly string[] = []) =>
    stack.run(["up", "--plan", plan, ...args], policyEnv(policy));
  /**
   * Runs up with a saved plan that no longer matches, and returns the differences in its error. Checks that the run
   * changes nothing.
   */
  const refused = async (policy: Policy) => {
    const before = await live();
    const run = await up(policy, ["--json"]);
    expect([run.code, run.stderr]).toEqual([2, expect.stringContaining("differs from the reviewed plan")]);
    expect(await live()).toEqual(before);
    const { error } = JSON.parse(run.stdout) as { error: { code: string; differences: PlanDifference[] } };
    expect(error.code).toBe("plan_outdated");
    // Sorted, since the two engines process independent resources in different orders.
    return error.differences.map(({ in: place, object, field }) => [place, object, field]).sort();
  };
  const live = async () => [
    JSON.stringify(await fleet.client.getPublicKeys()),
    JSON.stringify(await fleet.client.getFirewallRules()),
    stack.stateText("commonjs-program"),
  ];
  const usernames = async () => (await fleet.client.getPublicKeys()).map(({ username }) => username);

  it("is encrypted with the stack's key", async () => {
    const run = await save(policyOf("^deploy$"));
    expect(run.stderr).toContain(`Wrote the plan to ${plan}.`);
    expect(statSync(plan).mode & 0o777).toBe(0o600);
    const text = readFileSync(plan, "utf8");
    const file = JSON.parse(text) as { content: string };
    // Searches only for long texts: the encrypted content, in base64, can contain a short name by chance.
    for (const part of ["PublicKey", "username", fleet.tenant]) expect(text).not.toContain(part);
    const at = file.content.length - 8;
    const other = file.content[at] === "A" ? "B" : "A";
    const content = `${file.content.slice(0, at)}${other}${file.content.slice(at + 1)}`;
    writeFileSync(plan, JSON.stringify({ ...file, content }));
    expect(await up(policyOf("^x$"))).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/cannot be decrypted/),
    });
    expect(await usernames()).toEqual(["^root$"]);
    writeFileSync(plan, text);
  });

  it("is rejected if the program has changed, and the error lists each changed field", async () => {
    expect(await refused({ ana: policyOf("^admin$").ana })).toEqual([
      ["program", 'FirewallRule "closed"', undefined],
      ["program", 'PublicKey "ana"', "username"],
    ]);
  });

  it("is rejected if a managed or unmanaged object has changed", async () => {
    const [[rule], [device]] = [await fleet.client.getFirewallRules(), await fleet.client.getDevices()];
    if (!rule || !device) throw new Error("there is no rule, or no device");
    const { id, ...body } = rule;
    const params = { uid: device.uid };
    await fleet.client.updateFirewallRule({ params: { id }, body: { ...body, active: false } });
    await fleet.client.createApiKey({ body: { name: "by-hand", expiresAt: 30 } });
    await fleet.client.createDeviceTag({ params, body: { tag: "prod" } });
    expect(await refused(policyOf("^deploy$"))).toEqual([
      ["service", 'ApiKey "by-hand"', undefined],
      ["service", `FirewallRule "${id}"`, "active"],
      ["service", 'device "web-1"', "tags"],
      ["state", 'FirewallRule "closed"', "active"],
    ]);
    await fleet.client.updateFirewallRule({ params: { id }, body });
    await fleet.client.deleteApiKey({ params: { key: "by-hand" } });
    await fleet.client.deleteDeviceTag({ params: { ...params, tag: "prod" } });
  });

  it("is applied by up --plan without a prompt, even if there are new devices, which the run reports", async () => {
    await fleet.enroll("web-3");
    const done = await up(policyOf("^deploy$"));
    expect([done.code, done.stderr]).toEqual([
      0,
      expect.stringContaining('added since the review: device "web-3"'),
    ]);
    expect(await usernames()).toEqual(["^deploy$"]);
  });

  it("is not saved if a finding blocks, and cannot be applied to selected resources only", async () => {
    rmSync(plan);
    const run = await save({ closed: policyOf("^root$").closed }, ["--protect", "web-1", "--no-refresh"], 2);
    expect(run.stderr).toContain(`Did not write ${plan}: `);
    expect(await up(policyOf("^root$"))).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`Cannot read the plan ${plan}: it does not exist.`),
    });
    expect(await up(policyOf("^root$"), ["--target", "**ana"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("--plan cannot be used with --target."),
    });
  });

  it("blocks a program that declares other resources in the run than in the plan", async () => {
    await save(policyOf("^ops$"), ["--no-refresh"]);
    const env = { ...policyEnv(policyOf("^ops$")), POLICY_WHEN_RUN: JSON.stringify(policyOf("^.*$")) };
    const run = await stack.run(["up", "--plan", plan], env);
    expect([run.code, run.stdout + run.stderr]).toEqual([1, expect.stringMatching(/PublicKey|ana/)]);
    expect(await usernames()).toEqual(["^deploy$"]);
  });

  it("lists objects that stay after the deletion of their resource", async () => {
    const { ana, closed } = policyOf("^deploy$");
    const kept = { ...ana, options: { retainOnDelete: true } };
    await stack.apply({ ana: kept, closed });
    const run = await stack.run(["review", "--json", "--no-refresh"], policyEnv({ closed }));
    const { namespaces, changes } = JSON.parse(run.stdout) as Review;
    const [namespace] = namespaces;
    expect(namespace?.access).toEqual([]);
    expect(namespace?.unknown).toContainEqual(expect.stringContaining("leaves its object unmanaged"));
    expect(changes).toMatchObject([{ name: "ana", op: "delete", retained: true }]);
    const { stdout } = await stack.run(["preview"], policyEnv({ closed }));
    expect(stdout).toContain("PublicKey ana  the object stays, unmanaged");
    expect(stdout).toContain("1 to keep unmanaged");
    expect(stdout).not.toContain("to delete");
  });
});
