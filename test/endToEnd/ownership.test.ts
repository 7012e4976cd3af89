import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { DriftReport } from "../../provider/drift/driftReport.ts";
import { environmentWithout } from "../support/command.ts";
import { changeKey, createKey } from "../support/fleet.ts";
import { COMMAND, changesOf, type Stack } from "../support/gatehouse.ts";
import { firewallRule, type Policy, policyEnv, publicKey } from "../support/policy.ts";
import { type PolicyProgram, testProgram } from "../support/policyProgram.ts";
import { sharedFleet } from "../support/sharedFleet.ts";
import { startSparseService } from "../support/sparseService.ts";
import { openTerminal } from "../support/terminal.ts";

const deny = firewallRule("deny", 10, { sourceIp: "^203\\." });
/** The key of another stack, adopted. */
const adopted = publicKey("ana", "^root$", { hostname: ".*" }, { adopt: true });
const apiKey = { type: "ApiKey", args: { name: "ci-key", role: "observer", validDays: 30 } };

/** An entry of a state file. */
interface Entry {
  readonly urn: string;
  readonly type: string;
  readonly id?: string;
}

// Each of these tests runs about ten commands, and most of them show the same behavior from another side.
// Slow: each test runs about ten commands. Faster tests in test/provider and test/review/guards cover declarations.
describe("the objects of a stack", { tags: ["long"], timeout: 120_000 }, () => {
  const fleet = sharedFleet();
  let program: PolicyProgram;
  beforeEach(() => {
    program = testProgram();
  });
  afterEach(() => fleet.clear());

  const stackOf = (name: string, env = fleet.env) => program.stack({ env, name });
  const up = (stack: Stack, policy: Policy) => stack.result(["up", "--yes"], policyEnv(policy));
  const drift = (stack: Stack, policy: Policy, code = 0) =>
    stack.result<DriftReport>(["drift"], policyEnv(policy), code);
  const repair = (stack: Stack, policy: Policy, ...args: readonly string[]) =>
    stack.run(["drift", "--repair", "--yes", ...args], policyEnv(policy));
  const stateFile = (stack: Stack) => program.stateFile(stack.name);
  const rules = async () => fleet.client.getFirewallRules();
  const keys = async () => fleet.client.getPublicKeys();
  /** The stack that declared each rule, key and API key last. */
  const declarers = async () =>
    [...(await rules()), ...(await keys()), ...(await fleet.client.listApiKeys())].map(
      ({ declaredBy }) => declaredBy?.stack,
    );

  type State = { checkpoint: { latest: { resources: Entry[] } } };
  const read = (stack: Stack) => JSON.parse(readFileSync(stateFile(stack), "utf8")) as State;
  const write = (stack: Stack, state: State) => writeFileSync(stateFile(stack), JSON.stringify(state));

  const withResources = ({ checkpoint, ...file }: State, resources: Entry[]): State => ({
    ...file,
    checkpoint: { ...checkpoint, latest: { ...checkpoint.latest, resources } },
  });

  /** Moves resources from the state of a stack to the state of another one, as `pulumi state move` does. */
  function move(from: Stack, to: Stack, names: readonly string[]): void {
    const [source, target] = [read(from), read(to)];
    const isMoved = ({ urn }: Entry) => names.includes(urn.split("::").at(-1) ?? "");
    const provider = target.checkpoint.latest.resources.find(({ type }) =>
      type.startsWith("pulumi:providers:"),
    );
    const moved = source.checkpoint.latest.resources.filter(isMoved).map((entry) => {
      const text = JSON.stringify(entry);
      // Only the URNs of the entry change. Its inputs and outputs keep the old URN.
      const { urn, parent } = JSON.parse(text) as { urn: string; parent: string };
      const renamed = (old: string) => old.replace(`urn:pulumi:${from.name}::`, `urn:pulumi:${to.name}::`);
      return {
        ...entry,
        urn: renamed(urn),
        parent: renamed(parent),
        provider: `${provider?.urn}::${provider?.id}`,
      };
    });
    const kept = source.checkpoint.latest.resources.filter((entry) => !isMoved(entry));
    write(from, withResources(source, kept));
    write(to, withResources(target, [...target.checkpoint.latest.resources, ...moved]));
  }

  it("that moved to another stack are claimed there, and stay at a repair of the old stack", async () => {
    const [s1, s2] = [stackOf("s1"), stackOf("s2")];
    const kept = { ana: publicKey("ana") };
    const moved: Policy = { deny, ci: apiKey };
    await up(s1, { ...kept, ...moved });
    // `pulumi state move` encrypts secrets with the key of the other stack. Here, both stacks have the same key.
    copyFileSync(program.path("Pulumi.s1.yaml"), program.path("Pulumi.s2.yaml"));
    await up(s2, { bob: publicKey("bob") });
    move(s1, s2, ["deny", "ci"]);

    // A repair before the new stack has run.
    const early = await repair(s1, kept);
    expect([early.code, early.stdout]).toEqual([2, expect.stringContaining("--delete-forgotten")]);
    expect(await rules()).toHaveLength(1);
    expect(await fleet.client.listApiKeys()).toHaveLength(1);
    const report = await drift(s1, kept, 2);
    const earlier = report.unmanaged.filter(({ declaredEarlier }) => declaredEarlier);
    expect(earlier.map(({ kind }) => kind).sort()).toEqual(["ApiKey", "FirewallRule"]);

    const program2 = { bob: publicKey("bob"), ...moved };
    const preview = await s2.run(["preview"], policyEnv(program2));
    expect([preview.code, preview.stderr]).toEqual([0, ""]);
    expect(preview.stdout).toContain('FirewallRule "deny": claims the object, which deny of');
    expect(preview.stdout).toContain('ApiKey "ci": claims the object');
    const before = await rules();
    const entries = await fleet.client.getAuditTrail({ params: { tenant: fleet.tenant } });
    expect(changesOf(await up(s2, program2))).toEqual(["update ci", "update deny"]);
    expect((await declarers()).sort()).toEqual(["s1", "s2", "s2", "s2"]);
    expect(await rules()).toMatchObject([{ ...before[0], declaredBy: { stack: "s2", resource: "deny" } }]);
    expect(await fleet.client.getAuditTrail({ params: { tenant: fleet.tenant } })).toEqual(entries);
    expect(changesOf(await up(s2, program2))).toEqual([]);

    const late = await repair(s1, kept, "--delete-forgotten");
    expect([late.code, late.stdout]).toEqual([2, expect.stringContaining("--adopt-from")]);
    expect(await rules()).toHaveLength(1);
    expect(await fleet.client.listApiKeys()).toHaveLength(1);
  });

  it("that another stack adopted without a difference belong to that stack, also when the old stack is destroyed", async () => {
    const [a, b] = [stackOf("a"), stackOf("b")];
    await up(a, { ana: publicKey("ana"), deny });
    await up(b, { ana: adopted });
    expect((await keys())[0]?.declaredBy?.stack).toBe("b");
    const destroyed = await a.run(["destroy", "--yes", "--json"]);
    expect(destroyed.code).toBe(2);
    expect(JSON.parse(destroyed.stdout)).toMatchObject({
      ok: true,
      left: [{ type: "PublicKey", name: "ana", owner: expect.stringMatching(/^ana of .*\/b$/) }],
    });
    expect(await keys()).toHaveLength(1);
    expect(await rules()).toEqual([]);
    expect(changesOf(await b.result(["up", "--yes"], policyEnv({ ana: publicKey("ana") })))).toEqual([]);
    expect((await b.run(["destroy", "--yes"])).code).toBe(0);
    expect(await keys()).toEqual([]);
  });

  it("that another stack has claimed are deleted only with --delete-claimed", {
    tags: ["long"],
  }, async () => {
    const [a, b] = [stackOf("a"), stackOf("b")];
    await up(a, { ana: publicKey("ana") });
    await up(b, { ana: adopted });
    expect((await a.run(["destroy", "--yes", "--delete-claimed"])).code).toBe(0);
    expect(await keys()).toEqual([]);
  });

  it("that a stack retained and another one adopted stay at a repair of the first stack", {
    tags: ["long"],
  }, async () => {
    const [a, b] = [stackOf("a"), stackOf("b")];
    await up(a, { ana: { ...publicKey("ana"), options: { retainOnDelete: true } }, deny });
    await up(a, { deny });
    await up(b, { ana: adopted });
    for (const args of [[], ["--delete-forgotten"]]) {
      const run = await repair(a, { deny }, ...args);
      expect([run.code, run.stdout]).toEqual([2, expect.stringContaining("declared this object last")]);
    }
    expect(await keys()).toHaveLength(1);
  });

  it("stay with a renamed stack, also if a new stack has the old name", { tags: ["long"] }, async () => {
    const old = stackOf("prod");
    const policy = { ana: publicKey("ana"), deny };
    await up(old, policy);
    const renamed = stackOf("prod-eu");
    mkdirSync(dirname(stateFile(renamed)), { recursive: true });
    // `pulumi stack rename` replaces the stack's name in the URNs, but not in inputs and outputs.
    const state = read(old);
    const resources = state.checkpoint.latest.resources.map((entry) => {
      const named = entry as Entry & { parent?: string; provider?: string };
      const change = (text: string | undefined) => text?.replace("urn:pulumi:prod::", "urn:pulumi:prod-eu::");
      return {
        ...named,
        urn: change(named.urn) ?? "",
        parent: change(named.parent),
        provider: change(named.provider),
      };
    });
    renameSync(stateFile(old), stateFile(renamed));
    write(renamed, withResources(state, resources));
    const settings = program.path("Pulumi.prod.yaml");
    if (existsSync(settings)) renameSync(settings, program.path("Pulumi.prod-eu.yaml"));

    await up(old, { bob: publicKey("bob") });
    const early = await repair(old, { bob: publicKey("bob") });
    expect(early.code).toBe(2);
    expect(await rules()).toHaveLength(1);
    expect(changesOf(await up(renamed, policy))).toEqual(
      expect.arrayContaining(["update ana", "update deny"]),
    );
    expect((await repair(old, { bob: publicKey("bob") }, "--delete-forgotten")).code).toBe(2);
    expect(await rules()).toHaveLength(1);
    expect((await keys()).map(({ name }) => name).sort()).toEqual(["ana", "bob"]);
    expect((await renamed.run(["destroy", "--yes"])).code).toBe(0);
    expect((await keys()).map(({ name }) => name)).toEqual(["bob"]);
  });

  it("stay if the state is lost or an older state is restored, until --delete-forgotten", {
    tags: ["long"],
  }, async () => {
    const stack = stackOf("main");
    await up(stack, { deny });
    const older = readFileSync(stateFile(stack), "utf8");
    await up(stack, { deny, ana: publicKey("ana") });
    writeFileSync(stateFile(stack), older);
    expect((await repair(stack, { deny })).code).toBe(2);
    expect(await keys()).toHaveLength(1);
    const run = await stack.run(["up", "--yes"], policyEnv({ deny, bob: publicKey("bob") }));
    expect([run.code, run.stdout]).toEqual([
      0,
      expect.stringMatching(/PublicKey ana .* was declared by this stack earlier/),
    ]);
    expect((await repair(stack, { deny, bob: publicKey("bob") }, "--delete-forgotten")).code).toBe(0);
    expect((await keys()).map(({ name }) => name)).toEqual(["bob"]);
    expect(await rules()).toHaveLength(1);
  });

  it("are named by drift and review if the answer to their creation was lost and the program changed", async () => {
    const stack = stackOf("main");
    await up(stack, { deny });
    // The state of this moment lacks the key, as after a creation whose answer was lost.
    const before = readFileSync(stateFile(stack), "utf8");
    await up(stack, { deny, ana: publicKey("ana") });
    writeFileSync(stateFile(stack), before);
    const changed = { deny, ana: { ...publicKey("ana"), args: publicKey("bob").args } };
    const report = await drift(stack, changed, 2);
    expect(report.unmanaged).toMatchObject([{ kind: "PublicKey", name: "ana", declaredEarlier: true }]);
    const review = await stack.run(["review"], policyEnv(changed));
    expect(review.stdout).toMatch(/PublicKey ana \([0-9a-f:]+\), declared by this stack earlier/);
    const run = await stack.run(["up", "--yes"], policyEnv(changed));
    expect([run.code, run.stdout]).toEqual([
      0,
      expect.stringMatching(/PublicKey ana .* was declared by this stack earlier/),
    ]);
  });

  it("are not deleted by a repair on a server without declarations, unless the user confirms each one", {
    tags: ["long"],
  }, async () => {
    const sparse = await startSparseService(fleet.service.url, {});
    try {
      const stack = stackOf("main", { ...fleet.env, GATEHOUSE_URL: sparse.url });
      await up(stack, { deny });
      await createKey(fleet.client, "backdoor");
      const run = await repair(stack, { deny });
      expect([run.code, run.stdout]).toEqual([
        2,
        expect.stringContaining("does not record whether another stack"),
      ]);
      expect(await keys()).toHaveLength(1);

      const args = ["drift", program.folder, "--stack", "main", "--engine", "embedded", "--repair"];
      const env = {
        ...environmentWithout("GATEHOUSE_", "PULUMI_"),
        ...fleet.env,
        GATEHOUSE_URL: sparse.url,
        ...policyEnv({ deny }),
        ...program.backend,
      };
      const answered = async (answer: string) => {
        const terminal = openTerminal(process.execPath, [COMMAND, ...args], { env });
        await terminal.untilShown(/Delete PublicKey backdoor .*\? .* \[y\/N\] /s);
        terminal.type(answer);
        if (answer === "y") {
          await terminal.untilShown("Repair? [y/N] ");
          terminal.type("y");
        }
        return terminal.code;
      };
      expect([await answered("n"), (await keys()).length]).toEqual([2, 1]);
      expect([await answered("y"), (await keys()).length]).toEqual([0, 0]);
    } finally {
      await sparse.stop();
    }
  });
});

describe("an update", { timeout: 120_000 }, () => {
  const fleet = sharedFleet();
  let stack: Stack;
  const key = (name: string, username = "^(ana|root)$") => ({
    ana: publicKey("ana", username, { hostname: ".*" }, { name }),
  });
  const live = async () => (await fleet.client.getPublicKeys())[0];

  /** An administrator removes root from the key. */
  const narrow = () => changeKey(fleet.client, "ana", { username: "^ana$" });

  beforeEach(async () => {
    stack = testProgram().stack({ env: fleet.env });
    await stack.apply(key("ana"));
  });
  afterEach(() => fleet.clear());

  const REFUSAL =
    /username is "\^ana\$" on the service, and "\^\(ana\|root\)\$" in the state; last changed by user admin from .* \(updatePublicKey\).*Run with --refresh/s;

  it("does not revert a manual change of another field: the preview and the run report both values and the actor", {
    tags: ["long"],
  }, async () => {
    await narrow();
    const preview = await stack.run(["preview"], policyEnv(key("ana (on call)")));
    expect([preview.code, preview.stderr]).toEqual([1, expect.stringMatching(REFUSAL)]);
    for (const args of [
      ["up", "--yes"],
      ["up", "--yes", "--skip-preview"],
    ]) {
      const run = await stack.run(args, policyEnv(key("ana (on call)")));
      expect([run.code, run.stderr + run.stdout]).toEqual([1, expect.stringMatching(REFUSAL)]);
    }
    expect(await live()).toMatchObject({ name: "ana", username: "^ana$" });
    const refreshed = await stack.result(["up", "--yes", "--refresh"], policyEnv(key("ana (on call)")));
    expect(changesOf(refreshed)).toEqual(["update ana name username"]);
    expect(await live()).toMatchObject({ name: "ana (on call)", username: "^(ana|root)$" });
  });

  it("accepts a manual change that equals the declaration", async () => {
    await narrow();
    const run = await stack.result(["up", "--yes"], policyEnv(key("ana (on call)", "^ana$")));
    expect(changesOf(run)).toEqual(["update ana name username"]);
    expect(await live()).toMatchObject({ name: "ana (on call)", username: "^ana$" });
  });
});
