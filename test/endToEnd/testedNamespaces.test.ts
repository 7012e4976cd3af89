/**
 * Slow: each command runs policy tests in a process. Faster tests in test/review/guards cover the findings.
 *
 * @module-tag long
 */
import { beforeAll, describe, expect, it } from "vitest";
import type { Result } from "../../provider/engine/index.ts";
import type { Review } from "../../provider/review/report/review.ts";
import type { TestedNamespace } from "../../provider/review/testedNamespace.ts";
import { createKey, deleteKey } from "../support/fleet.ts";
import { spawnGatehouse } from "../support/gatehouse.ts";
import { type Policy, policyEnv, publicKey } from "../support/policy.ts";
import { type PolicyProgram, testProgram } from "../support/policyProgram.ts";
import { sharedFleet } from "../support/sharedFleet.ts";

const HEAD = 'import { expect, policyTest, untested } from "@gatehouse-access/provider/policy";\n';
/** Returns a policy file with one test: no login as root. */
const noRoot = (options = "") => `${HEAD}
policyTest("no root login", ({ access }) => {
  expect(access).not.toAllow({ login: "root" });
}${options === "" ? "" : `, ${options}`});
`;
const UNTESTED = 'untested("bravo", "devices of the lab");\n';

/** The settings select the namespace of the fleet, and the programs open root in the namespace bravo. */
describe("policy tests of a program that changes another namespace", { timeout: 240_000 }, () => {
  const fleet = sharedFleet();
  let program: PolicyProgram;
  let bravo: string;
  let opened: Policy;

  beforeAll(async () => {
    bravo = (await fleet.client.createNamespace({ body: { name: "bravo" } })).tenantId;
    await fleet.enroll("alpha-01");
    await fleet.enroll("bravo-01", undefined, bravo);
    opened = { root: publicKey("root", "^root$", { hostname: ".*" }, { tenant: bravo }) };
  });

  const stackOf = (policyFile: string) => {
    program = testProgram();
    program.write("access.policy.ts", policyFile);
    return program.stack({ env: fleet.env, name: "test", spawned: true });
  };
  const run = async <T>(stack: ReturnType<typeof stackOf>, args: string[], policy: Policy) => {
    const { code, stdout, stderr } = await stack.run([...args, "--json"], policyEnv(policy));
    expect(code, stderr).not.toBe(1);
    return { code, result: JSON.parse(stdout) as T };
  };
  const review = (stack: ReturnType<typeof stackOf>, policy = opened, ...flags: string[]) =>
    run<Review>(stack, ["review", "--create", ...flags], policy);
  const preview = async (stack: ReturnType<typeof stackOf>, policy = opened) => {
    const { code, result } = await run<Result & { policyTests: TestedNamespace }>(
      stack,
      ["preview", "--create"],
      policy,
    );
    return { code, tested: result.policyTests };
  };
  const without = () =>
    expect.stringMatching(
      new RegExp(`^no policy test checks the namespace bravo \\(${bravo}\\), which the plan changes; `),
    );

  it("block a changed namespace that no test checks, unless --allow-incomplete is set", async () => {
    const stack = stackOf(noRoot());
    const reviewed = await review(stack);
    expect(reviewed).toMatchObject({ code: 2, result: { notEvaluated: [without()] } });
    expect(reviewed.result.namespaces.map(({ name, tests }) => [name, tests.length])).toEqual([
      [expect.any(String), 1],
      ["bravo", 0],
    ]);
    expect((await review(stack, opened, "--allow-incomplete")).code).toBe(0);
    const { code, tested } = await preview(stack);
    expect(code).toBe(2);
    expect(tested).toMatchObject({ ok: true, tenant: fleet.tenant, notEvaluated: [without()] });
    expect(tested.namespaces).toMatchObject([{ tenant: fleet.tenant }]);
  });

  it("block by a test that names the namespace", async () => {
    for (const name of ["bravo", bravo, "*"]) {
      const stack = stackOf(noRoot(`{ namespaces: ["${name}"] }`));
      const { code, result } = await review(stack, opened, "--allow-incomplete");
      expect(code).toBe(2);
      expect(result.namespaces.find(({ tenant }) => tenant === bravo)?.tests).toMatchObject([
        { name: "no root login", ok: false },
      ]);
      expect(result.notEvaluated).toEqual([]);
    }
    const stack = stackOf(noRoot('{ namespaces: ["bravo"] }'));
    const { code, tested } = await preview(stack);
    expect([code, tested.ok, tested.notEvaluated]).toEqual([2, false, []]);
    expect(tested.namespaces).toEqual([{ tenant: bravo, name: "bravo" }]);
    expect(tested.tests).toMatchObject([{ ok: false, namespace: { tenant: bravo, name: "bravo" } }]);
  });

  it("pass and list a namespace that is declared as untested", async () => {
    const stack = stackOf(`${noRoot()}${UNTESTED}`);
    const listed = `the namespace bravo (${bravo}) is declared as untested: devices of the lab (access.policy.ts:6)`;
    const reviewed = await review(stack);
    expect(reviewed).toMatchObject({ code: 0, result: { notEvaluated: [] } });
    expect(reviewed.result.unknown).toContain(listed);
    const { code, tested } = await preview(stack);
    expect([code, tested.untested]).toEqual([
      0,
      [{ namespace: "bravo", reason: "devices of the lab", file: "access.policy.ts", line: 6 }],
    ]);
    const text = await stack.run(["preview", "--create"], policyEnv(opened));
    expect(text.stdout).toContain("untested: the namespace bravo: devices of the lab");
  });

  it("need no more than the tests of the main namespace if only this namespace changes", async () => {
    const stack = stackOf(noRoot());
    const { code, result } = await review(stack, { ana: publicKey("ana", "^ana$") });
    expect([code, result.notEvaluated, result.testedElsewhere]).toEqual([0, [], undefined]);
    expect(result.namespaces).toMatchObject([{ tenant: fleet.tenant, tests: [{ ok: true }] }]);
  });

  it("run in a namespace that the plan does not contain, and report a name that matches no namespace", async () => {
    const manual = fleet.client.forTenant(bravo);
    await createKey(manual, "manual", "^root$");
    try {
      const stack = stackOf(noRoot('{ namespaces: ["bravo", "brvo"] }'));
      const plain = { ana: publicKey("ana", "^ana$") };
      const { code, result } = await review(stack, plain);
      expect(code).toBe(2);
      expect(result.testedElsewhere).toMatchObject([
        { tenant: bravo, name: "bravo", tests: [{ ok: false }] },
      ]);
      const misspelled =
        'the policy test "no root login" did not run in the namespace "brvo": the user of the credential is not a member of a namespace with this name';
      const untestedMain = expect.stringContaining(`(${fleet.tenant}), which the plan changes`);
      expect(result.notEvaluated).toEqual([misspelled, untestedMain]);
      const text = await stack.run(["review", "--create"], policyEnv(plain));
      expect(text.stdout).toContain("Policy tests in the namespace bravo: 0 of 1 pass");
      expect(text.stdout).toContain('bravo: the policy test "no root login" fails');
      const live = await spawnGatehouse(["test", program.folder, "--json"], fleet.env);
      expect(live.code).toBe(2);
      expect(JSON.parse(live.stdout)).toMatchObject({
        ok: false,
        tenant: fleet.tenant,
        notEvaluated: [misspelled],
        namespaces: [{ tenant: bravo, name: "bravo" }],
        unknown: [expect.stringMatching(/^no policy test checks the namespace /)],
      });
    } finally {
      await deleteKey(manual, "manual");
    }
  });

  it("do not check a namespace that the plan creates", async () => {
    const created: Policy = {
      trials: { type: "Namespace", args: { name: "trials" } },
      ana: publicKey("ana", "^ana$"),
    };
    const early =
      'no policy test can check the namespace "trials" before the plan creates it; declare untested("trials", "<reason>") until it exists';
    const { code, result } = await review(stackOf(noRoot()), created);
    expect([code, result.notEvaluated]).toEqual([2, [early]]);
    const stack = stackOf(`${noRoot('{ namespaces: ["*", "trials"] }')}untested("trials", "new");\n`);
    expect(await review(stack, created)).toMatchObject({ code: 0, result: { notEvaluated: [] } });
  });

  it("check live namespaces with resources of the stack, in drift and test, and access lists them", async () => {
    const stack = stackOf(noRoot());
    await stack.apply(opened);
    try {
      const reason = `no policy test checks the namespace bravo (${bravo}), in which 1 resource of the stack is; `;
      const drift = await run<{ policyTests: TestedNamespace }>(
        stack,
        ["drift", "--unmanaged", "ignore"],
        opened,
      );
      expect(drift.code).toBe(2);
      expect(drift.result.policyTests.notEvaluated).toEqual([expect.stringContaining(reason)]);
      const ofStack = await run<TestedNamespace>(stack, ["test"], opened);
      expect(ofStack.code).toBe(2);
      expect(ofStack.result.notEvaluated).toEqual([expect.stringContaining(reason)]);
      // Without --stack, the command does not know the namespaces of the stack. The output lists the tested namespace.
      const alone = await spawnGatehouse(["test", program.folder], fleet.env);
      expect(alone.code).toBe(0);
      expect(alone.stdout).toMatch(new RegExp(`^Tested the namespace \\S+ \\(${fleet.tenant}\\):\n  ok `));
      expect(alone.stdout).not.toContain("bravo");
      const ofAccess = ["access", "--stack", "test", "--engine", "embedded", "--folder", program.folder];
      const access = await spawnGatehouse(ofAccess, { ...fleet.env, ...program.backend });
      expect(access.code).toBe(0);
      expect(access.stdout).toContain(
        `Not known: the access in the namespace bravo (${bravo}), in which 1 resource of the stack is;`,
      );
      program.write("bravo.policy.ts", noRoot('{ namespaces: ["bravo"] }'));
      const tested = await run<TestedNamespace>(stack, ["test"], opened);
      expect([tested.code, tested.result.notEvaluated]).toEqual([2, []]);
      expect(tested.result.tests.map(({ ok, namespace }) => [ok, namespace?.tenant])).toEqual([
        [true, fleet.tenant],
        [false, bravo],
      ]);
    } finally {
      await stack.result(["destroy", "--yes"], policyEnv(opened));
    }
  });
});
