import { beforeAll, expect, it } from "vitest";
import type { Result } from "../../provider/engine/index.ts";
import type { TestedNamespace } from "../../provider/review/testedNamespace.ts";
import { changeKey } from "../support/fleet.ts";
import { describeEngines, type Stack } from "../support/gatehouse.ts";
import { type Policy, publicKey } from "../support/policy.ts";
import { sharedProgram, testProgram } from "../support/policyProgram.ts";
import { sharedFleet } from "../support/sharedFleet.ts";

type Tested = Result & { policyTests?: TestedNamespace };

const base: Policy = {
  ana: publicKey("ana", "^root$", { hostname: ".*" }),
  bob: publicKey("bob", "^bob$", { tags: ["web"] }),
  contractor: publicKey("contractor", "^support$", { tags: ["edge"] }),
};
const { bob: _, ...withoutBob } = base;
/**
 * The changed policy: the contractor's key admits every device, Ana's login changes, Bob is removed, and a key is
 * added.
 */
const changed: Policy = {
  ...withoutBob,
  ana: publicKey("ana", "^ana$", { hostname: ".*" }),
  contractor: publicKey("contractor", "^support$", { hostname: ".*" }),
  new: publicKey("new", "^new$", { hostname: ".*" }),
};

/**
 * The policy tests. They read the expected keys (name and login pattern) from the environment, so that each run can
 * expect different keys.
 */
const TESTS = `import { expect, policyTest } from "@gatehouse-access/provider/policy";

policyTest("contractors stay out of production", ({ access }) => {
  expect(access).not.toAllow({ key: "contractor", device: { tag: "prod" } });
});
policyTest("keys", ({ policy }) => {
  const { KEYS } = process.env;
  const keys = policy.keys.map(({ name, username }) => name + username).sort().join(" ");
  expect(keys).toSatisfy((text) => KEYS === undefined || KEYS === text, "as expected: " + KEYS);
});
`;

const byUrn = (left: { urn: string }, right: { urn: string }) => left.urn.localeCompare(right.urn);

// Long tests repeat the policy tests with other commands and options.
describeEngines("policy tests of a program", { timeout: 120_000 }, (engine) => {
  const fleet = sharedFleet();
  const program = sharedProgram();
  let stack: Stack;
  /** The same stack, for commands that run no policy tests. */
  let untested: Stack;
  let device: string;

  beforeAll(async () => {
    device = await fleet.enroll("web-01");
    await tag(["prod", "web"]);
    const edge = await fleet.enroll("edge-01");
    await fleet.client.updateDeviceTags({ params: { uid: edge }, body: { tags: ["edge"] } });
    stack = stackOf(fleet.env);
    untested = stackOf(fleet.env, { spawned: false });
    await untested.apply(base);
    program.write("access.policy.ts", TESTS);
  });

  const env = (policy: Policy, keys?: string) => ({
    POLICY: JSON.stringify(policy),
    ...(keys !== undefined && { KEYS: keys }),
  });
  const tag = (tags: string[]) => fleet.client.updateDeviceTags({ params: { uid: device }, body: { tags } });
  const stackOf = (settings: Record<string, string>, { name = "test", spawned = true } = {}) =>
    program.stack({ engine, env: settings, name, spawned });
  const tested = async (args: readonly string[], run: Record<string, string>, code: number) => {
    const { policyTests, ...result } = (await stack.result(args, run, code)) as Tested;
    return {
      result,
      policyTests,
      failed: policyTests?.tests.filter(({ ok }) => !ok).map(({ name }) => name),
    };
  };
  // Ignores unmanaged objects, since the test sets the tags of devices outside the program.
  const DRIFT = ["drift", "--unmanaged", "ignore"];
  const UNCHANGED = "ana^root$ bob^bob$ contractor^support$";

  it("pass in a preview that changes nothing", { tags: ["long"] }, async () => {
    const { code, stdout } = await stack.run(["preview"], env(base, UNCHANGED));
    expect(code).toBe(0);
    expect(stdout).toMatch(/3 unchanged[\s\S]*\nPolicy tests\n[\s\S]*\n2 passed\n$/);
  });

  it("fail in a preview of changes that violate them", { tags: ["long"] }, async () => {
    const run = env(changed, "ana^ana$ contractor^support$ new^new$");
    const { result, policyTests, failed } = await tested(["preview"], run, 2);
    expect(failed).toEqual(["contractors stay out of production"]);
    expect(policyTests).toMatchObject({ ok: false, tenant: fleet.tenant, unknown: [] });
    expect(result.summary).toMatchObject({ create: 1, update: 2, delete: 1 });
    // The output must not contain the evaluated policy's values, which the policy tests read.
    expect(result.steps.filter((step) => "before" in step || "after" in step)).toEqual([]);
    const plain = (await untested.result(["preview", "--no-tests"], run)) as Tested;
    expect(plain.policyTests).toBeUndefined();
    // Sorted, since the two engines process independent resources in different orders.
    expect(plain.steps.toSorted(byUrn)).toEqual(result.steps.toSorted(byUrn));
  });

  const limits: [limit: string, name: string, code: number, keys: string][] = [
    ["--target", "ana", 0, "ana^ana$ bob^bob$ contractor^support$"],
    ["--exclude", "bob", 2, "ana^ana$ bob^bob$ contractor^support$ new^new$"],
  ];
  const limited = async (...[limit, name, code, keys]: (typeof limits)[number]) => {
    const { failed } = await tested(["preview", limit, `**::${name}`], env(changed, keys), code);
    expect(failed).toEqual(code === 2 ? ["contractors stay out of production"] : []);
  };
  it.each(limits)(
    "check the live objects of resources that a preview with %s %s omits",
    { tags: ["long"] },
    limited,
  );
  it("can fail in a drift run that finds no difference from the state", { tags: ["long"] }, async () => {
    expect((await tested(DRIFT, env(base, UNCHANGED), 0)).failed).toEqual([]);
    await tag(["prod", "web", "edge"]);
    try {
      const text = await stack.run(DRIFT, env(base));
      expect(text.code).toBe(2);
      expect(text.stdout).toMatch(
        /4 resources as declared[\s\S]*\nPolicy tests\nTested the namespace .+:\nFAIL {2}contractors stay out of production/,
      );
    } finally {
      await tag(["prod", "web"]);
    }
  });

  it("pass in a drift run that still reports a difference from the state", { tags: ["long"] }, async () => {
    await changeKey(fleet.client, "bob", { username: "^robert$" });
    try {
      const keys = "ana^root$ bob^robert$ contractor^support$";
      const { result, policyTests } = await tested(DRIFT, env(base, keys), 2);
      expect(result.summary).toMatchObject({ update: 1 });
      expect(policyTests?.ok).toBe(true);
    } finally {
      await changeKey(fleet.client, "bob", { username: "^bob$" });
    }
  });

  it("report their errors after the plan, and require no service if there are no policy tests", {
    tags: ["long"],
  }, async () => {
    // These commands end before the policy tests start, so they can run in this process.
    const nowhere = stackOf({}, { name: "nowhere", spawned: false });
    const text = await nowhere.run(["preview", "--create"], env({}));
    expect(text.code).toBe(1);
    expect(text.stdout).toMatch(/No resources .*\n$/);
    expect(text.stderr).toMatch(/^error: GATEHOUSE_URL is not set\. Set it to the address of the service/);

    const unreachable = { ...fleet.env, GATEHOUSE_URL: "http://127.0.0.1:9" };
    const json = await nowhere.run(["preview", "--json"], { ...env({}), ...unreachable });
    expect(json.code).toBe(1);
    expect(JSON.parse(json.stdout)).toMatchObject({ ok: false, error: { code: "unreachable" } });
    expect(json.stderr).toMatch(/^error: .*http:\/\/127\.0\.0\.1:9\b/m);
    expect((await nowhere.run(["preview", "--no-tests"], env({}))).code).toBe(0);

    const none = testProgram().stack({ engine, env: {}, name: "none" });
    const { code, stdout, stderr } = await none.run(["preview", "--create"], env({}));
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).not.toContain("Policy tests");
  });
});
