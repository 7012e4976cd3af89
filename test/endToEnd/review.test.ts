import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import type { Review } from "../../provider/review/report/review.ts";
import { createKey } from "../support/fleet.ts";
import { describeEngines, type Stack } from "../support/gatehouse.ts";
import { firewallRule, type Policy, policyEnv, publicKey } from "../support/policy.ts";
import { sharedProgram } from "../support/policyProgram.ts";
import { schemaFaults } from "../support/schemas.ts";
import { sharedFleet } from "../support/sharedFleet.ts";

const base: Policy = {
  bob: { type: "Member", args: { email: "bob@example.com", role: "administrator" } },
  tags: { type: "DeviceTags", args: { device: "web-01", tags: ["prod"] } },
  ana: publicKey("ana-laptop", "^root$", { hostname: "^web-01$" }),
};

/**
 * The changed policy: Ana's key admits more devices, Bob gets a key and loses the administrator role, and a new rule
 * denies access to web-02.
 */
const changed: Policy = {
  ...base,
  bob: { type: "Member", args: { email: "bob@example.com", role: "observer" } },
  ana: publicKey("ana-laptop", "^root$", { hostname: "^web-" }),
  "bob-key": publicKey("bob|`laptop`", "^deploy$", { tags: ["prod"] }),
  closed: firewallRule("deny", 10, { filter: { hostname: "^web-02$" } }),
};

describeEngines("a review", { timeout: 180_000 }, (engine) => {
  const fleet = sharedFleet(["bob"]);
  const program = sharedProgram();
  let stack: Stack;
  let before: readonly string[];

  beforeAll(async () => {
    for (const name of ["web-01", "web-02", "db-01"]) await fleet.enroll(name);
    await createKey(fleet.client, "made by hand", "^backup$", { hostname: "^db-01$" });
    stack = program.stack({ engine, env: fleet.env });
    await stack.apply(base);
    before = await everything();
  });

  /** Returns everything that a review must leave unchanged. */
  const everything = async () => [
    JSON.stringify(await fleet.client.getPublicKeys()),
    stack.stateText("commonjs-program"),
  ];
  /** Flag that skips the refresh. The state is up to date, and a refresh would double the time. */
  const UNREAD = ["--no-refresh"];
  /** Flag that allows the unmanaged key. Most of these reviews do not test unmanaged objects. */
  const BESIDE = ["--allow-unmanaged"];
  const review = async (policy: Policy, args: readonly string[], code: number, beside = BESIDE) => {
    const run = await stack.run(["review", ...args, ...beside], policyEnv(policy));
    expect([run.code, run.stderr]).toEqual([code, expect.any(String)]);
    return run;
  };
  const reviewed = async (policy: Policy, code: number, args: readonly string[] = []) => {
    const run = await review(policy, ["--json", ...args], code);
    const result = JSON.parse(run.stdout) as Review;
    expect(schemaFaults("review", result)).toEqual([]);
    const [namespace] = result.namespaces;
    if (!namespace) throw new Error("no namespace was reviewed");
    return { result, namespace };
  };

  it("reports no gained or lost access if nothing changes", { tags: ["long"] }, async () => {
    const { result, namespace } = await reviewed(base, 0);
    expect(result.changes).toEqual([]);
    expect([namespace.access, namespace.members, namespace.lockouts, namespace.unknown]).toEqual([
      [],
      [],
      [],
      [],
    ]);
    expect(namespace.coverage).toMatchObject({ managed: 3, total: 4, percent: 75 });
    expect(namespace.coverage.unmanaged).toMatchObject([
      { name: "made by hand", widens: ["gives login backup on db-01"] },
    ]);
  });

  it("blocks on unmanaged objects that widen access", { tags: ["long"] }, async () => {
    const { stdout } = await review(base, UNREAD, 2, []);
    expect(stdout).toMatch(
      /1 blocking finding:\n.*PublicKey made by hand \([0-9a-f:]+\) is unmanaged and widens access: gives login backup on db-01 \(allow with --allow-unmanaged\)\n$/,
    );
  });

  it("reports gained and lost access", async () => {
    const { result, namespace } = await reviewed(changed, 0, UNREAD);
    expect(schemaFaults("review", { ...result, version: 2 })).toEqual(["/version must be equal to constant"]);
    const { members, ...others } = namespace;
    expect(schemaFaults("review", { ...result, namespaces: [{ ...others, people: members }] })).toEqual([
      "/namespaces/0 must have required property 'members'",
      "/namespaces/0 must NOT have additional properties people",
    ]);
    const lines = namespace.access?.map(({ change, keys, logins, where }) => [
      change,
      keys.map(({ name }) => name).join(),
      logins.join(),
      where,
    ]);
    // Ana's key now admits web-02, but the new rule denies every login on web-02.
    expect(lines).toEqual([["gained", "bob|`laptop`", "deploy", "web-01"]]);
    expect(namespace.members).toEqual([
      { change: "role", email: "bob@example.com", from: "administrator", to: "observer" },
    ]);
    // The owner runs the review and stays in the namespace, so no finding reports a lockout.
    expect(namespace.lockouts).toEqual([]);
  });

  it("writes a comment and a map, and changes nothing", { tags: ["long"] }, async () => {
    const [comment, map] = [join(program.states, "comment.md"), join(program.states, "map.html")];
    const run = await review(changed, ["--markdown", comment, "--html", map, ...UNREAD], 0);
    expect(run.stdout).toContain("key bob|`laptop` gains login deploy on web-01");
    expect(run.stdout).toContain("bob@example.com becomes observer (was administrator)");
    const text = readFileSync(comment, "utf8");
    expect(text.split("\n", 1)).toEqual([`<!-- gatehouse review commonjs-program/${stack.name} -->`]);
    expect(text).toContain("- **+** key `` bob|`laptop` `` gains login `deploy` on web-01");
    expect(readFileSync(map, "utf8")).toContain("made by hand");
    expect(await everything()).toEqual(before);
  });

  it("blocks if no key reaches a protected group any longer", async () => {
    const { bob, tags } = base;
    const withoutAna = { ...(bob && { bob }), ...(tags && { tags }) };
    const isProtected = ["--protect", "tag:prod", ...UNREAD];
    const mistaken = ["--protect", "tag:prdo"];
    const { result, namespace } = await reviewed(withoutAna, 2, [...mistaken, ...isProtected]);
    expect(result.notEvaluated).toEqual(["--protect tag:prdo matches no device; correct the tag or name"]);
    expect(namespace.lockouts.map(({ code }) => code)).toEqual(["protected-devices"]);
    await reviewed(withoutAna, 0, [...isProtected, "--allow-lockout"]);
  });
});
