import { join } from "node:path";
import { type DriftSearch, findDrift } from "../../../../provider/drift/findDrift.ts";
import { KeptFile } from "../../../../provider/drift/KeptFile.ts";
import type { Plan } from "../../../../provider/engine/index.ts";
import type { Exception } from "../../../../provider/namespace/coverage.ts";
import { countingInvited } from "../../../../provider/namespace/readNamespace.ts";
import { matchers } from "../../../../provider/policyTests/matchers.ts";
import { reviewPlan } from "../../../../provider/review/reviewPlan.ts";
import type { Connection } from "../../../../provider/service/connection.ts";
import { evaluateAccess, type NamespacePolicy } from "../../../../sdk/policy/index.ts";
import { HOUR } from "../../../../sdk/times.ts";
import { Choices } from "../../../support/walk.ts";
import { differences, type Evaluated, laterDifferences, requireAsked, type Stated } from "./compare.ts";
import { ManualChanges, resetNamespace } from "./manual.ts";
import { type Program, RandomProgram, slotsOf } from "./programs.ts";
import { ADDRESSES, type Decisions, emailOf, LOGINS, loginOf, type TruthService } from "./TruthService.ts";

/** Thrown for a program whose inputs the provider rejects. */
export class InvalidProgramError extends Error {
  override readonly name = "InvalidProgramError";
}

/** Applies the programs of a round. */
export interface TruthEngine {
  /** Plans a program with values. @throws InvalidProgramError if the provider rejects inputs of the program */
  plan(program: Program): Promise<{ readonly plan: Plan; readonly notEvaluated: readonly string[] }>;
  /** Applies the program of the last plan. Returns the failures of its resources. */
  up(program: Program): Promise<readonly Error[]>;
  /** Updates the state from the live objects. */
  refresh(): Promise<void>;
  /** Returns the input of a drift report for the state and a program. */
  search(
    program: Program,
    connection: Connection,
  ): Promise<Pick<DriftSearch, "stack" | "own" | "language"> & { readonly notEvaluated: readonly string[] }>;
  /** The objects in the state, as `<kind> <id>` without the namespace. */
  managed(): ReadonlySet<string>;
  /** The secrets of all API keys that the stack has created, by the time of creation. */
  secrets(): Promise<ReadonlyMap<string, string>>;
}

/** The numbers of all comparisons. */
interface Counts {
  reviews: number;
  /** Reviews without anything that was not evaluated, whose run succeeded. */
  compared: number;
  /** Reviews that stated something as not evaluated, or a failure of the run. */
  blocked: number;
  /** Runs with failures. */
  failed: number;
  drifts: number;
  /** Comparisons after the clock has moved. */
  later: number;
  /** Queries of policy tests. */
  queries: number;
}

export const newCounts = (): Counts => ({
  reviews: 0,
  compared: 0,
  blocked: 0,
  failed: 0,
  drifts: 0,
  later: 0,
  queries: 0,
});

const QUERIES = 20;
const page = { query: { perPage: 100 } } as const;

/** The exception for the administrator, whom no program declares. */
const BOSS: Exception = {
  kind: "Member",
  id: emailOf("boss"),
  until: "2999-12-31",
  reason: "changes objects manually",
  line: 1,
};

/** The options of a {@link TruthRound}. */
interface RoundOptions {
  readonly seed: number;
  readonly truth: TruthService;
  readonly engine: TruthEngine;
  readonly counts: Counts;
  /** False if the clock of the engine's processes cannot be moved. */
  readonly movesClock: boolean;
}

/**
 * A round: random programs and manual changes in a restored namespace. Each review, drift report and policy test is
 * compared with the decisions of the service before and after the change. A seed always gives the same round.
 */
export class TruthRound {
  readonly #options: RoundOptions;
  readonly #choices: Choices;
  readonly #program: RandomProgram;
  readonly #manual: ManualChanges;
  readonly #log: string[] = [];
  readonly #differences: string[] = [];
  /** True if the last review blocked. */
  #isBlocked = false;

  constructor(options: RoundOptions) {
    const { seed, truth } = options;
    this.#options = options;
    this.#choices = new Choices(seed);
    const slots = slotsOf({ uids: truth.uids, issuer: truth.issuer.url, namespace: truth.namespace });
    this.#program = new RandomProgram(slots, this.#choices, `zone${seed}`);
    this.#manual = new ManualChanges(truth, this.#choices, () => this.#program.zone);
  }

  /** Runs the round. Returns its log if something differs, otherwise undefined. */
  async run(): Promise<string | undefined> {
    try {
      await this.#run();
    } catch (error) {
      if (!(error instanceof InvalidProgramError)) {
        this.#report("error", [error instanceof Error ? (error.stack ?? error.message) : String(error)]);
      }
    }
    const { seed } = this.#options;
    if (this.#differences.length === 0) return undefined;
    const repeat = `Seed ${seed}. To repeat: TEST_TRUTH_SEED=${seed} TEST_TRUTH_ROUNDS=1`;
    return [repeat, ...this.#log, ...this.#differences.map((text) => `differs: ${text}`)].join("\n");
  }

  async #run(): Promise<void> {
    const { truth, engine } = this.#options;
    await resetNamespace(truth, this.#program.zone);
    this.#program.fill(0.6);
    let live = await this.#apply(await this.#decisions());
    for (let step = 0; live && step < 2; step += 1) {
      const declared = live;
      if (this.#choices.chance(0.7)) {
        const from = this.#manual.log.length;
        const tags = await this.#presentTags();
        // Only the first manual changes follow a state in which the program declares everything.
        const isCompared = step === 0;
        await this.#manual.make(isCompared ? engine.managed() : undefined);
        this.#log.push(...this.#manual.log.slice(from).map((text) => `administrator: ${text}`));
        live = await this.#decisions();
        // Rules that contradict each other block the review. A drift report compares with the state after a repair, which
        // creates a deleted rule as the newest one of its priority, so it may decide otherwise than the deleted rule.
        if (isCompared && !this.#isBlocked) await this.#drift(declared, live, tags);
      }
      if (this.#choices.chance(0.8)) this.#program.edit();
      live = await this.#apply(live);
    }
  }

  async #decisions(): Promise<Decisions> {
    const { truth, engine } = this.#options;
    return truth.decisions(await engine.secrets());
  }

  #report(what: string, found: readonly string[]): void {
    this.#log.push(...found.map((text) => `DIFFERENCE (${what}): ${text}`));
    this.#differences.push(...found.map((text) => `${what}: ${text}`));
  }

  /** Returns exceptions for the tags that devices have before the manual changes. */
  async #presentTags(): Promise<Exception[]> {
    const devices = await this.#options.truth.client.getDevices(page);
    return devices.flatMap(({ uid, tags }) =>
      tags.map((tag) => ({
        kind: "DeviceTagAttachment",
        id: `${uid}/${tag}`,
        until: "2999-12-31",
        reason: "exists before the manual changes",
        line: 1,
      })),
    );
  }

  /** Compares a drift report with the decisions in the declared state and now. */
  async #drift(declared: Decisions, live: Decisions, exceptions: readonly Exception[]): Promise<void> {
    const { truth, engine, counts, seed } = this.#options;
    const connection = truth.connection();
    const { report, meanings } = await findDrift({
      connection,
      home: await connection.homeIfAny(),
      targets: {},
      unmanaged: "fail",
      others: [],
      ...(await engine.search(this.#program.build(), connection)),
      declarer: undefined,
      exceptions: [BOSS, ...exceptions],
      seen: new KeptFile(join(truth.folder, `seen${seed}`)),
    });
    const [namespace] = report.namespaces;
    const [meaning] = meanings;
    if (!namespace || !meaning) throw new Error("the drift report has no namespace");
    if (report.notEvaluated.length > 0) {
      this.#log.push(`drift: not evaluated: ${report.notEvaluated.join("; ")}`);
      return;
    }
    counts.drifts += 1;
    this.#log.push(`drift: ${JSON.stringify(pick(namespace))}`);
    this.#report("drift", differences(namespace, meaning.before.evaluated, declared, live));
  }

  /** Reviews and applies the program. Returns the decisions after the run; undefined if the run fails. */
  async #apply(before: Decisions): Promise<Decisions | undefined> {
    const { engine, counts } = this.#options;
    const program = this.#program.build();
    this.#log.push(`program: ${JSON.stringify(program)}`);
    if (this.#choices.chance(0.5)) {
      this.#log.push("refresh");
      await engine.refresh();
    }
    let reviewed = await this.#review(program);
    if (reviewed.review.preflightFailures.length > 0) {
      this.#log.push(`refresh, since the review blocks: ${reviewed.review.preflightFailures.join("; ")}`);
      await engine.refresh();
      reviewed = await this.#review(program);
    }
    const { review, namespaces } = reviewed;
    const [namespace] = namespaces;
    if (!namespace) throw new Error("the review has no namespace");
    counts.reviews += 1;
    const failures = await engine.up(program);
    const after = await this.#decisions();
    const blocking = [...review.preflightFailures, ...review.notEvaluated, ...namespace.review.notEvaluated];
    this.#isBlocked = blocking.length > 0;
    this.#log.push(...blocking.map((text) => `the review blocks: ${text}`));
    if (failures.length > 0) {
      this.#log.push(...failures.map((failure) => `failed: ${failure.message}`));
      counts.failed += 1;
      return undefined;
    }
    if (blocking.length > 0) {
      counts.blocked += 1;
      return after;
    }
    counts.compared += 1;
    const { evaluated, unknown, access } = namespace.review;
    this.#log.push(`review: ${JSON.stringify({ ...pick(namespace.review), unknown })}`);
    this.#report("review", differences(namespace.review, evaluated, before, after));
    this.#testPolicy(namespace.planned.state.policy, evaluated, after);
    if (!this.#choices.chance(0.3) || !this.#options.movesClock) return after;
    const later = await this.#wait();
    this.#report("later", laterDifferences(access ?? [], namespace.before.policy, after, later));
    this.#testPolicy(namespace.planned.state.policy, evaluated, later);
    return later;
  }

  /** Moves the clock. Returns the decisions after that. */
  #wait(): Promise<Decisions> {
    const hours = this.#choices.of([4, 40, 100, 220]);
    this.#log.push(`${hours} hours later`);
    this.#options.truth.clock.advance(hours * HOUR);
    this.#options.counts.later += 1;
    return this.#decisions();
  }

  async #review(program: Program) {
    const { truth, engine } = this.#options;
    const { plan, notEvaluated } = await engine.plan(program);
    const options = { folder: truth.folder, protect: [], logins: LOGINS, addresses: ADDRESSES, notEvaluated };
    return reviewPlan(truth.connection(), plan, options);
  }

  /** Compares policy tests on the planned namespace with the decisions after the run. */
  #testPolicy(policy: NamespacePolicy, evaluated: Evaluated, after: Decisions): void {
    requireAsked(evaluated);
    const { keys, devices } = policy;
    if (keys.length === 0 || devices.length === 0) return;
    const access = evaluateAccess(countingInvited(policy), evaluated, undefined, new Date());
    const wrong: string[] = [];
    for (let index = 0; index < QUERIES; index += 1) {
      const { fingerprint } = this.#choices.of(keys);
      const { uid } = this.#choices.of(devices);
      const [login, address] = [this.#choices.of(LOGINS), this.#choices.of(ADDRESSES)];
      const query = { key: fingerprint, login, device: { uid }, from: address };
      const { holds } = matchers.toAllow(access, [query], false);
      this.#options.counts.queries += 1;
      const isAllowed = after.allowed.has(loginOf(fingerprint, login, address, uid));
      if (holds !== isAllowed)
        wrong.push(`${JSON.stringify(query)}: the test ${holds}, the service ${isAllowed}`);
    }
    this.#report("policy test", wrong);
  }
}

const pick = ({ access, members, workloads, apiKeys, settings }: Stated) => ({
  access,
  members,
  workloads,
  apiKeys,
  settings,
});

/** The number of rounds and the first seed of a run of the test. */
interface Rounds {
  readonly rounds: number;
  readonly seed: number;
}

/**
 * Returns the settings of a test run. The seed is fixed, so that a run fails only after a change of the code. The
 * variables TEST_TRUTH_ROUNDS and TEST_TRUTH_SEED set others, to search for new faults.
 */
export const roundsOf = (rounds: number): Rounds => ({
  rounds: Number(process.env.TEST_TRUTH_ROUNDS ?? rounds),
  seed: Number(process.env.TEST_TRUTH_SEED ?? 1),
});
