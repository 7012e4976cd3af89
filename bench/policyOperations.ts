// The operations that bench/policy.ts measures: `node bench/policyOperations.ts <task as JSON>` prints a Measured as JSON.
import {
  accessChanges,
  type EvaluatedLogins,
  evaluateAccess,
  explain,
  grantsOf,
  loginsToEvaluate,
  type NamespacePolicy,
} from "../sdk/dist/policy/index.js";
import { LargePolicy, type PolicySize, randomNumbers } from "../test/policy/largePolicy.ts";
import { median } from "./measuring.ts";

/** The policy that is evaluated. */
interface Subject {
  readonly policy: NamespacePolicy;
  readonly evaluated: EvaluatedLogins;
  readonly changed: NamespacePolicy;
}

interface Operation {
  readonly title: string;
  /** Number of access queries in one run. The reported times are for one query. @default 1 */
  readonly questions?: number;
  /**
   * Runs the operation.
   * @returns a short description of the operation's result, for the report's table
   */
  readonly run: (subject: Subject) => string;
}

const QUESTIONS = 100;

/**
 * Counts a generator's items and the device uids in them. Like the production code that reads such generators, it keeps
 * only one item in memory at a time.
 */
function count(items: Iterable<{ readonly devices: readonly string[] }>, what: string): string {
  let [all, uids] = [0, 0];
  for (const { devices } of items) {
    all += 1;
    uids += devices.length;
  }
  return `${all.toLocaleString("en")} ${what}, ${uids.toLocaleString("en")} uids`;
}

/** Returns access queries for logins that are spread over the policy. The queries are the same in every run. */
function questionsOf({ policy, evaluated }: Subject) {
  const below = randomNumbers(3);
  const one = <T>(all: readonly T[]): T => all[below(all.length)] as T;
  return Array.from({ length: QUESTIONS }, () => ({
    key: one(policy.keys),
    device: one(policy.devices),
    login: one(evaluated.logins),
    address: one(evaluated.addresses),
  }));
}

export const OPERATIONS = {
  evaluated: {
    title: "`loginsToEvaluate`",
    run: ({ policy }) => {
      const { logins, addresses } = loginsToEvaluate([policy]);
      return `${logins.length} logins, ${addresses.length} addresses`;
    },
  },
  build: {
    title: "`evaluateAccess`",
    run: ({ policy, evaluated }) => {
      evaluateAccess(policy, evaluated);
      return "";
    },
  },
  grants: {
    title: "`evaluateAccess`, then `grantsOf` for all grants",
    run: ({ policy, evaluated }) => count(grantsOf(evaluateAccess(policy, evaluated)), "grants"),
  },
  computed: {
    title: "the same with the result of `loginsToEvaluate`",
    run: ({ policy }) => count(grantsOf(evaluateAccess(policy, loginsToEvaluate([policy]))), "grants"),
  },
  changes: {
    title: "two `evaluateAccess`, then `accessChanges` for all changes",
    run: ({ policy, evaluated, changed }) => {
      const uids = policy.devices.map(({ uid }) => uid);
      const [before, after] = [
        evaluateAccess(policy, evaluated, uids),
        evaluateAccess(changed, evaluated, uids),
      ];
      return count(accessChanges(before, after), "changes");
    },
  },
  reach: {
    title: "`evaluateAccess`, then the devices that one key reaches with one login name from one address",
    questions: QUESTIONS,
    run: (subject) => {
      const access = evaluateAccess(subject.policy, subject.evaluated);
      let uids = 0;
      for (const { key, login, address } of questionsOf(subject)) {
        const devices = access.admitted(key, login)?.new_intersection(access.verdict(login, address).open);
        uids += devices ? access.uidsOf(devices).length : 0;
      }
      return `${QUESTIONS} questions to one Access, ${uids.toLocaleString("en")} uids`;
    },
  },
  explain: {
    title: "`explain`",
    questions: QUESTIONS,
    run: (subject) => {
      const allowed = questionsOf(subject).filter(({ key, device, login, address }) => {
        const question = { fingerprint: key.fingerprint, login, address, uid: device.uid };
        return explain(subject.policy, question).allowed;
      });
      return `${QUESTIONS} questions, ${allowed.length} allowed`;
    },
  },
} as const satisfies Record<string, Operation>;

export type OperationName = keyof typeof OPERATIONS;

/** The input of a measuring process: a policy size, and the operations to measure on that policy. */
export interface Task {
  readonly size: PolicySize;
  /** Number of runs of each operation. */
  readonly rounds: number;
  readonly operations: readonly OperationName[];
}

/**
 * Measured times of an operation, in milliseconds. The times of an operation with several access queries are for one
 * query.
 */
interface Timed {
  /** Time of the first run, which starts without compiled code. */
  readonly first: number;
  /** Medians of all runs: wall clock time and CPU time. */
  readonly median: number;
  readonly core: number;
  readonly outcome: string;
}

export interface Measured {
  readonly timed: Readonly<Partial<Record<OperationName, Timed>>>;
  /** Memory of the process in megabytes: `policyMegabytes` when only the policy is loaded, `megabytes` at the peak. */
  readonly policyMegabytes: number;
  readonly megabytes: number;
  /** Maximum heap and external memory after a run in megabytes, including garbage. */
  readonly heapMegabytes: number;
}

const megabytes = (bytes: number) => Math.round(bytes / 1e6);

function measure({ size, rounds, operations }: Task): Measured {
  const large = new LargePolicy(size);
  const subject = { policy: large.policy, evaluated: large.evaluated, changed: large.changed() };
  const policyMegabytes = megabytes(process.memoryUsage.rss());
  let heap = 0;
  const time = (name: OperationName): Timed => {
    const { run, questions = 1 }: Operation = OPERATIONS[name];
    const [walls, cores]: [number[], number[]] = [[], []];
    let outcome = "";
    for (let round = 0; round < rounds; round += 1) {
      const [cpu, started] = [process.cpuUsage(), performance.now()];
      outcome = run(subject);
      walls.push((performance.now() - started) / questions);
      const { user, system } = process.cpuUsage(cpu);
      cores.push((user + system) / 1000 / questions);
      const { heapUsed, external } = process.memoryUsage();
      heap = Math.max(heap, heapUsed + external);
    }
    return { first: walls[0] ?? 0, median: median(walls), core: median(cores), outcome };
  };
  return {
    timed: Object.fromEntries(operations.map((name) => [name, time(name)])),
    policyMegabytes,
    // `maxRSS` is in kibibytes.
    megabytes: megabytes(process.resourceUsage().maxRSS * 1024),
    heapMegabytes: megabytes(heap),
  };
}

if (process.argv[1] === import.meta.filename) {
  process.stdout.write(JSON.stringify(measure(JSON.parse(process.argv[2] ?? ""))));
}
