import type { Case } from "./case.ts";
import { CONNECTIONS, type Load, load, type Measured } from "./load.ts";
import { coreTimeOf, memoryOf, type ServerProcess } from "./process.ts";
import { type Service, type Stream, type Target, withService } from "./service.ts";

/** Where and how long is measured. */
export interface Run {
  /** Temporary: data folder, database and logs. */
  readonly folder: string;
  readonly url: string;
  readonly seconds: number;
  readonly rounds: number;
  /** The server that each case is compared with, which goes on all the time. */
  readonly floor: ServerProcess;
}

/** Medians of the rounds. */
export interface Result extends Measured {
  readonly title: string;
  /** Answers per second of the floor, in turn with those of the case. */
  readonly floor: number;
  readonly ratio: number;
  /**
   * Milliseconds of a core for each request, of what is asked beside it too: says more than the rate where others use
   * the machine.
   */
  readonly core: number;
  readonly floorCore: number;
  /** Megabytes that the server held at the end. */
  readonly megabytes: number;
  /** SQL statements for each request, of what is asked beside it too. */
  readonly statements: number;
}

/** Before anything is measured: the compiler and the caches have done their work by then. */
const WARM_UP_SECONDS = 2;
/** Longest measuring of the floor in a round. */
const FLOOR_SECONDS = 3;
/** Of the counted run, and of what goes before it. */
const COUNTED_REQUESTS = 48;

const targetsOf = (floor: ServerProcess): readonly Target[] => [
  { url: floor.url, connections: CONNECTIONS, next: () => ({ method: "GET", path: "/" }) },
];

/** Makes the floor ready to be measured. */
export async function warmUp(floor: ServerProcess): Promise<void> {
  await loadFor(targetsOf(floor), WARM_UP_SECONDS);
}

/**
 * What the service can do of one case, and of what is asked beside it: speed and memory of one that is left alone,
 * statements of one that counts.
 */
export async function measureCase(run: Run, one: Case): Promise<Result[]> {
  const asked = one.beside ? [one, one.beside] : [one];
  const connections = CONNECTIONS / asked.length;
  const streams = asked.map((each): Stream => ({ asked: each, connections, index: 0 }));
  const measured = await withService({ ...run, counting: false }, streams, async (service) => {
    const { server, targets } = service;
    if (one.before) await loadAll(targets, { requests: Math.max(one.before, CONNECTIONS) });
    await loadFor(targets, WARM_UP_SECONDS);
    const rounds = [];
    for (let round = 0; round < run.rounds; round += 1) rounds.push(await measureRound(run, one, service));
    return { rounds, megabytes: memoryOf(server.pid) };
  });
  const statements = await withService({ ...run, counting: true }, streams, countStatements);
  return asked.map(({ title }, at) => ({
    title,
    ...medians(measured.rounds.flatMap((round) => round[at] ?? [])),
    megabytes: measured.megabytes,
    statements,
  }));
}

/** The figures of each target. */
async function measureRound(run: Run, one: Case, { server, targets, changes }: Service) {
  // On a machine that others use, the floor is another one soon.
  const floor = await timed(run.floor, targetsOf(run.floor), Math.min(run.seconds, FLOOR_SECONDS));
  const before = one.changes ? await changes() : 0;
  const { each, core } = await timed(server, targets, run.seconds);
  if (one.changes) requireChanges(one, (await changes()) - before, each);
  return each.map((measured) => ({
    ...measured,
    core,
    floor: floor.rate,
    floorCore: floor.core,
    ratio: measured.rate / floor.rate,
  }));
}

/** @throws Error when not each request changed something: what was measured is something else */
function requireChanges({ title }: Case, changes: number, [measured]: readonly Measured[]): void {
  if (measured === undefined || changes >= measured.count) return;
  throw new Error(
    `${title}: ${measured.count} requests succeeded, but the audit trail has ${changes} more changes`,
  );
}

async function countStatements({ server, targets }: Service): Promise<number> {
  const limit = { requests: COUNTED_REQUESTS };
  await loadAll(targets, limit);
  await server.statements();
  await loadAll(targets, limit);
  return (await server.statements()) / (COUNTED_REQUESTS * targets.length);
}

const loadAll = (targets: readonly Target[], limit: Load["limit"]): Promise<Measured[]> =>
  Promise.all(targets.map((target) => load({ ...target, limit })));

/** Sends requests for so long, and waits for those that are open then: the next run must not pay for them. */
async function loadFor(targets: readonly Target[], seconds: number): Promise<Measured[]> {
  const measured = await loadAll(targets, { seconds });
  await loadAll(targets, { requests: CONNECTIONS / targets.length });
  return measured;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((one, other) => one + other, 0);

/** What is measured of each target, and of all of them: answers per second, and milliseconds of a core for each request. */
async function timed({ pid }: ServerProcess, targets: readonly Target[], seconds: number) {
  const before = coreTimeOf(pid);
  const each = await loadFor(targets, seconds);
  const requests = sum(each.map(({ count }) => count)) + CONNECTIONS;
  return {
    each,
    rate: sum(each.map(({ rate }) => rate)),
    core: (coreTimeOf(pid) - before) / requests,
  };
}

/** Of each value by itself. */
function medians<T extends Record<string, number>>(rounds: readonly T[]): T {
  const middle = (name: string): number => {
    const sorted = rounds.map((round) => round[name] ?? Number.NaN).sort((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  };
  return Object.fromEntries(Object.keys(rounds[0] ?? {}).map((name) => [name, middle(name)])) as T;
}
