import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { KeptFile } from "../../provider/drift/KeptFile.ts";
import type { Exception } from "../../provider/estate/coverage.ts";
import { findDrift } from "../../provider/drift/findDrift.ts";
import { countingInvited } from "../../provider/estate/namespaceState.ts";
import { matchers } from "../../provider/policyTests/matchers.ts";
import { reviewPlan } from "../../provider/review/reviewPlan.ts";
import { Access } from "../../sdk/policy/index.ts";
import { Choices } from "../support/walk.ts";
import { accessDifferences, differences, requireAsked } from "./support/truth/compare.ts";
import { ManualChanges, resetNamespace } from "./support/truth/manual.ts";
import { RandomProgram, slotsOf } from "./support/truth/programs.ts";
import { InvalidProgramError, TruthStack } from "./support/truth/TruthStack.ts";
import { ADDRESSES, type Decisions, emailOf, LOGINS, loginOf, TruthWorld } from "./support/truth/TruthWorld.ts";

// Compares reviews, drift reports and policy tests with the decisions of the service before and after each run. The
// service decides on its own data, and the test asks it as an SSH gateway does. So the test never compares the product
// with itself.

const ROUNDS = Number(process.env.TEST_TRUTH_ROUNDS ?? "60");
const SEED = Number(process.env.TEST_TRUTH_SEED ?? "1");

let world: TruthWorld;
beforeAll(async () => {
  world = await TruthWorld.start();
});
afterAll(() => world?.stop());

const counts = { reviews: 0, compared: 0, blocked: 0, failed: 0, drifts: 0, queries: 0 };

/** The exception for the administrator, whom no program declares. */
const BOSS = {
  ...{ kind: "Member", id: emailOf("boss"), until: "2999-12-31", reason: "changes objects manually", line: 1 },
};

const count = (message: string) => {
  const kind = message.replaceAll(/[0-9a-f]{8,}|[0-9a-f]{2}(:[0-9a-f]{2})+|\d+/g, "…").slice(0, 160);
  failures.set(kind, (failures.get(kind) ?? 0) + 1);
};
const times: Record<string, number> = {};
const failures = new Map<string, number>();

class Round {
  readonly seed: number;
  readonly choices: Choices;
  readonly stack: TruthStack;
  readonly program: RandomProgram;
  readonly manual: ManualChanges;
  readonly log: string[] = [];
  readonly differences: string[] = [];

  constructor(seed: number, namespace: string) {
    this.seed = seed;
    this.choices = new Choices(seed);
    this.stack = new TruthStack(`truth${seed}`, () => world.env());
    const slots = slotsOf({ uids: world.uids, issuer: world.issuer.url, namespace });
    this.program = new RandomProgram(slots, this.choices, `zone${seed}`);
    this.manual = new ManualChanges(world, this.choices, () => this.program.zone);
  }

  decisions(): Promise<Decisions> {
    return this.timed("decisions", world.decisions(this.stack.secrets()));
  }

  report(what: string, found: readonly string[]): void {
    if (found.length === 0) return;
    this.log.push(...found.map((text) => `DIFFERENCE (${what}): ${text}`));
    this.differences.push(...found.map((text) => `${what}: ${text}`));
  }

  async timed<T>(what: string, work: Promise<T>): Promise<T> {
    const from = performance.now();
    const result = await work;
    times[what] = Math.round((times[what] ?? 0) + performance.now() - from);
    return result;
  }

  async run(): Promise<void> {
    await this.timed("reset", resetNamespace(world, this.program.zone));
    this.program.fill(0.6);
    let live = await this.apply(await this.decisions());
    for (let step = 0; live && step < 2; step += 1) {
      const declared = live;
      if (this.choices.chance(0.7)) {
        const from = this.manual.log.length;
        const tags = await this.tagExceptions();
        await this.timed("manual", this.manual.make());
        this.log.push(...this.manual.log.slice(from).map((text) => `administrator: ${text}`));
        live = await this.decisions();
        if (step === 0) await this.timed("drift", this.drift(declared, live, tags));
      }
      if (this.choices.chance(0.8)) this.program.edit();
      live = await this.apply(live);
    }
  }

  /** Returns exceptions for all tags of devices. */
  async tagExceptions(): Promise<Exception[]> {
    const devices = await world.client.getDevices({ query: { perPage: 100 } });
    return devices.flatMap(({ uid, tags }) =>
      tags.map((tag) => ({
        ...{ kind: "DeviceTagAttachment", id: `${uid}/${tag}`, until: "2999-12-31" },
        ...{ reason: "exists before the manual changes", line: 1 },
      })),
    );
  }

  async drift(declared: Decisions, live: Decisions, exceptions: readonly Exception[]): Promise<void> {
    const connection = world.connection();
    const found = await findDrift({
      ...{ connection, home: await connection.homeIfAny(), stack: this.stack.commands(this.program.build()) },
      ...{ targets: {}, unmanaged: "fail", own: this.stack.resources(connection.client.url) },
      ...{ declarer: undefined, others: [], exceptions: [BOSS, ...exceptions], language: "typescript" },
      seen: new KeptFile(join(world.folder, `seen${this.seed}`)),
    });
    const [namespace] = found.report.namespaces;
    const [meaning] = found.meanings;
    if (!namespace || !meaning) throw new Error("the drift report has no namespace");
    counts.drifts += 1;
    if (found.report.notEvaluated.length > 0) {
      this.log.push(`drift not evaluated: ${found.report.notEvaluated}`);
      return;
    }
    this.report("drift", differences(namespace, meaning.before.evaluated, declared, live));
  }

  /** Reviews and applies the program. Returns the decisions after the run. */
  async apply(before: Decisions): Promise<Decisions | undefined> {
    const program = this.program.build();
    this.log.push(`program: ${JSON.stringify(program)}`);
    if (this.choices.chance(0.5)) {
      this.log.push("refresh");
      await this.stack.refresh();
    }
    let reviewed = await this.timed('review', this.review(program));
    if (reviewed.review.preflightFailures.length > 0) {
      this.log.push(`refresh, since the review blocks: ${reviewed.review.preflightFailures}`);
      await this.stack.refresh();
      reviewed = await this.review(program);
    }
    const { review, namespaces } = reviewed;
    const [namespace] = namespaces;
    if (!namespace) throw new Error("the review has no namespace");
    counts.reviews += 1;
    const failed = await this.timed("up", this.stack.up(program));
    const after = await this.decisions();
    const blocking = [...review.preflightFailures, ...review.notEvaluated, ...namespace.review.notEvaluated];
    if (failed.length > 0) {
      const isExpected = blocking.length > 0 ? "expected" : "UNEXPECTED";
      for (const failure of failed) count(`${isExpected}: ${failure.message}`);
      this.log.push(`failed: ${failed.map(String).join("; ")}`);
      // A run that fails although its review does not block is no difference of the access.
      counts.failed += 1;
      return undefined;
    }
    if (blocking.length > 0) {
      this.log.push(`the review blocks: ${blocking.join("; ")}`);
      counts.blocked += 1;
      return after;
    }
    counts.compared += 1;
    const { evaluated, unknown } = namespace.review;
    this.log.push(`review: ${JSON.stringify({ ...pick(namespace.review), unknown })}`);
    this.report("review", differences(namespace.review, evaluated, before, after));
    this.policyTest(namespace.planned, evaluated, after);
    return after;
  }

  async review(program: ReturnType<RandomProgram["build"]>) {
    const plan = await this.stack.plan(program);
    return reviewPlan(world.connection(), plan, {
      ...{ folder: world.folder, protect: [], logins: LOGINS, addresses: ADDRESSES },
    });
  }

  /** Compares the answers of policy tests on the planned namespace with the decisions after the run. */
  policyTest(
    { policy }: { policy: ConstructorParameters<typeof Access>[0] },
    evaluated: { readonly logins: readonly string[]; readonly addresses: readonly string[] },
    after: Decisions,
    time = new Date(),
  ): void {
    requireAsked(evaluated);
    const access = new Access(countingInvited(policy), evaluated, undefined, time);
    const wrong: string[] = [];
    for (let index = 0; index < 20; index += 1) {
      const key = policy.keys.length > 0 && this.choices.of(policy.keys);
      const device = policy.devices.length > 0 && this.choices.of(policy.devices);
      if (!key || !device) return;
      const [login, address] = [this.choices.of(LOGINS), this.choices.of(ADDRESSES)];
      const query = { key: key.fingerprint, login, device: { uid: device.uid }, from: address };
      const { holds } = matchers.toAllow(access, [query], false);
      counts.queries += 1;
      const isAllowed = after.allowed.has(loginOf(key.fingerprint, login, address, device.uid));
      if (holds !== isAllowed) wrong.push(`${JSON.stringify(query)}: test ${holds}, service ${isAllowed}`);
    }
    this.report("policy test", wrong);
  }
}

const pick = ({ access, members, workloads }: Parameters<typeof differences>[0]) => ({ access, members, workloads });
void accessDifferences;

it(`${ROUNDS} random rounds: reviews, drift reports and policy tests agree with the decisions of the service`, {
  tags: ["long"],
  timeout: 3_600_000,
}, async () => {
  const printed = vi.spyOn(console, "log").mockImplementation(() => {});
  const failed: string[] = [];
  let number = 0;
  const started = performance.now();
  for (let index = 0; index < ROUNDS; index += 1) {
    const seed = SEED + index;
    const { name } = await world.client.getNamespace({ params: { tenant: world.tenant } });
    const round = new Round(seed, name);
    try {
      await round.run();
    } catch (error) {
      if (error instanceof InvalidProgramError) count(error.message);
      else round.report("error", [error instanceof Error ? (error.stack ?? error.message) : String(error)]);
    }
    if (round.differences.length === 0) continue;
    number += 1;
    if (failed.length < 3 || process.env.TEST_TRUTH_ALL)
      failed.push(
        [
          `Seed ${seed}. To repeat: TEST_TRUTH_SEED=${seed} TEST_TRUTH_ROUNDS=1`,
          ...round.log,
          ...round.differences,
        ].join("\n"),
      );
  }
  printed.mockRestore();
  console.log([...failures].map(([kind, times]) => `${times} × ${kind}`).join("\n"));
  const perRound = Math.round((performance.now() - started) / ROUNDS);
  console.log(JSON.stringify({ ...counts, number, perRound, times }));
  expect(failed.join("\n\n")).toBe("");
});
