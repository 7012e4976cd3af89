import { join } from "node:path";
import type { Case } from "./cases.ts";
import { type BenchRequest, CONNECTIONS, type Load, load, type Measured } from "./load.ts";
import {
  coreTimeOf,
  FLOOR_COMMAND,
  memoryOf,
  SERVICE_COMMAND,
  type ServerProcess,
  startProcess,
} from "./process.ts";
import { NAMESPACES, PASSWORD, tenantOf } from "./seed.ts";

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
export interface Result extends Omit<Measured, "count"> {
  /** Answers per second of the floor, in turn with those of the case. */
  readonly floor: number;
  readonly ratio: number;
  /** Milliseconds of a core for each request: says more than the rate where others use the machine. */
  readonly core: number;
  readonly floorCore: number;
  /** Megabytes that the server held at the end. */
  readonly megabytes: number;
  /** SQL statements for each request. */
  readonly statements: number;
}

/** Before anything is measured: the compiler and the caches have done their work by then. */
const WARM_UP_SECONDS = 2;
/** Longest measuring of the floor in a round. */
const FLOOR_SECONDS = 3;
/** Of the counted run, and of what goes before it. */
const COUNTED_REQUESTS = 48;

type Target = Omit<Load, "limit">;

const targetOf = (floor: ServerProcess): Target => ({
  url: floor.url,
  headers: {},
  next: () => ({ method: "GET", path: "/" }),
});

/** Makes the floor ready to be measured. */
export async function warmUp(floor: ServerProcess): Promise<void> {
  await loadFor(targetOf(floor), WARM_UP_SECONDS);
}

/** What the service can do of one case: speed and memory of one that is left alone, statements of one that counts. */
export async function measureCase(run: Run, one: Case): Promise<Result> {
  const measured = await withService(run, one, false, async (server, target) => {
    if (one.before) await load({ ...target, limit: { requests: Math.max(one.before, CONNECTIONS) } });
    await loadFor(target, WARM_UP_SECONDS);
    const rounds = [];
    for (let round = 0; round < run.rounds; round += 1) {
      // On a machine that others use, the floor is another one soon.
      const floor = await timed(run.floor, targetOf(run.floor), Math.min(run.seconds, FLOOR_SECONDS));
      const result = await timed(server, target, run.seconds);
      rounds.push({
        ...result,
        floor: floor.rate,
        floorCore: floor.core,
        ratio: result.rate / floor.rate,
      });
    }
    return { ...medians(rounds), megabytes: memoryOf(server.pid) };
  });
  const statements = await withService(run, one, true, async (server, target) => {
    const limit = { requests: COUNTED_REQUESTS };
    await load({ ...target, limit });
    await server.statements();
    await load({ ...target, limit });
    return (await server.statements()) / COUNTED_REQUESTS;
  });
  return { ...measured, statements };
}

/** Sends requests for so long, and waits for those that are open then: the next run must not pay for them. */
async function loadFor(target: Target, seconds: number) {
  const measured = await load({ ...target, limit: { seconds } });
  await load({ ...target, limit: { requests: CONNECTIONS } });
  return measured;
}

async function timed({ pid }: ServerProcess, target: Target, seconds: number) {
  const before = coreTimeOf(pid);
  const { count, ...measured } = await loadFor(target, seconds);
  return { ...measured, core: (coreTimeOf(pid) - before) / (count + CONNECTIONS) };
}

/** Of each value by itself. */
function medians<T extends Record<string, number>>(rounds: readonly T[]): T {
  const middle = (name: string): number => {
    const sorted = rounds.map((round) => round[name] ?? Number.NaN).sort((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  };
  return Object.fromEntries(Object.keys(rounds[0] ?? {}).map((name) => [name, middle(name)])) as T;
}

async function withService<T>(
  { folder, url }: Run,
  one: Case,
  counting: boolean,
  work: (server: ServerProcess, target: Target) => Promise<T>,
): Promise<T> {
  const args = one.bare
    ? [...FLOOR_COMMAND, url]
    : [SERVICE_COMMAND, "serve", "--data-dir", folder, "--port", "0"];
  const server = await startProcess(args, {
    log: join(folder, "service.log"),
    // All requests come from one address.
    env: { GATEHOUSE_DATABASE_URL: url, ...WITHOUT_LIMITS },
    counting,
  });
  let index = 0;
  const next = (): BenchRequest => one.request(index++);
  try {
    return await work(server, { url: server.url, headers: await credential(server.url, one), next });
  } finally {
    await server.stop();
  }
}

const WITHOUT_LIMITS = {
  GATEHOUSE_LOGINS_PER_ADDRESS: "0",
  GATEHOUSE_LOGINS_PER_ACCOUNT: "0",
  GATEHOUSE_REPORTS_PER_ADDRESS: "0",
};

/** A token for the namespace of the case, as a person gets one. */
async function credential(url: string, { namespace }: Case): Promise<Record<string, string>> {
  if (namespace === undefined) return {};
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ username: NAMESPACES[namespace].owner, password: PASSWORD });
  const session = await tokenOf(await fetch(`${url}/api/login`, { method: "POST", headers, body }));
  const switched = await fetch(`${url}/api/auth/token/${tenantOf(namespace)}`, { headers: bearer(session) });
  return bearer(await tokenOf(switched));
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

async function tokenOf(response: Response): Promise<string> {
  if (!response.ok) throw new Error(`${response.url} answered ${response.status}: ${await response.text()}`);
  return ((await response.json()) as { token: string }).token;
}
