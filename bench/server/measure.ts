import { join } from "node:path";
import autocannon from "autocannon";
import { boundedStart } from "../../server/dist/process/boundMemory.js";
import { coreTimeOf, median, memoryOf, percentile, sum } from "../measuring.ts";
import { type ServerProcess, startServer, startService } from "../processes.ts";
import type { BenchRequest, Case } from "./cases.ts";
import { contentsOf, PASSWORD, tenantOf } from "./namespaces.ts";

/** Requests that are open at a time, over all loads of a server. */
export const CONNECTIONS = 16;

/** Before anything is measured: the compiler and the caches have done their work by then. */
const WARM_UP_SECONDS = 2;
/** Longest measuring of the floor in a round. */
const FLOOR_SECONDS = 3;
/** Of the counted run, and of what goes before it. */
const COUNTED_REQUESTS = 48;
/** Longest wait for an answer, in seconds. */
const TIMEOUT = 120;

// All requests come from one address, and create more rules than a namespace may have.
const WITHOUT_LIMITS = {
  GATEHOUSE_LOGINS_PER_ADDRESS: "0",
  GATEHOUSE_LOGINS_PER_ACCOUNT: "0",
  GATEHOUSE_REPORTS_PER_ADDRESS: "0",
  GATEHOUSE_MAXIMUM_FIREWALL_RULES: "0",
};

/** Where and how long is measured. */
export interface Run {
  /** Temporary: data folder, database and logs. */
  readonly folder: string;
  /** Of the database. */
  readonly url: string;
  readonly seconds: number;
  readonly rounds: number;
  /** The server that each case is compared with, which goes on all the time. */
  readonly floor: ServerProcess;
}

/** Requests to a server. */
interface Target {
  readonly url: string;
  /** Requests that are open at a time. */
  readonly connections: number;
  readonly next: () => BenchRequest;
}

const targetsOf = (floor: ServerProcess): readonly Target[] => [
  { url: floor.url, connections: CONNECTIONS, next: () => ({ method: "GET", path: "/" }) },
];

/** Starts the floor, with the flags of Node.js that the service takes for itself, and makes it ready to be measured. */
export async function startFloor(folder: string, url: string): Promise<ServerProcess> {
  const program = join(import.meta.dirname, "floor.ts");
  const { flags } = boundedStart([], {});
  const floor = await startServer([...flags, program, url], { log: join(folder, "floor.log") });
  await loadFor(targetsOf(floor), WARM_UP_SECONDS);
  return floor;
}

/**
 * Measures a case, and the requests beside it: speed and memory of a service that is left alone, statements of one that
 * counts. Core time and statements are those of all requests, also of those that are sent beside the case.
 * @returns medians of the rounds
 */
export async function measureCase(run: Run, one: Case) {
  const cases = one.beside ? [one, one.beside] : [one];
  // Numbers of requests go on from one service to the next: what one request has deleted, the next one cannot delete.
  const numbers = cases.map(() => 0);
  async function withService<T>(
    counting: boolean,
    work: (server: ServerProcess, targets: readonly Target[], changes: () => Promise<number>) => Promise<T>,
  ): Promise<T> {
    const env = { GATEHOUSE_DATABASE_URL: run.url, ...WITHOUT_LIMITS };
    const server = await startService(run.folder, { log: join(run.folder, "service.log"), env, counting });
    try {
      const callers = await Promise.all(cases.map((each) => callersOf(server.url, each)));
      const targets = cases.map((each, at): Target => {
        const next = () => {
          const index = numbers[at] ?? 0;
          numbers[at] = index + 1;
          const request = each.request(index);
          const caller = callers[at]?.[index % (callers[at]?.length ?? 1)];
          return { ...request, headers: { ...caller?.headers, ...request.headers } };
        };
        return { url: server.url, connections: CONNECTIONS / cases.length, next };
      });
      return await work(server, targets, () => changesOf(server.url, callers[0] ?? []));
    } finally {
      await server.stop();
    }
  }

  const { rounds, megabytes } = await withService(false, async (server, targets, changes) => {
    if (one.before) await loadAll(targets, { amount: Math.max(one.before, CONNECTIONS) });
    await loadFor(targets, WARM_UP_SECONDS);
    const rounds = [];
    for (let round = 0; round < run.rounds; round += 1) {
      // On a machine that others use, the floor is another one soon.
      const floor = await timed(run.floor, targetsOf(run.floor), Math.min(run.seconds, FLOOR_SECONDS));
      const before = one.changes ? await changes() : 0;
      const { each, core } = await timed(server, targets, run.seconds);
      const changed = one.changes ? (await changes()) - before : 0;
      // Otherwise what was measured is something else.
      if (one.changes && changed < (each[0]?.count ?? 0)) {
        throw new Error(
          `${one.title}: ${each[0]?.count} requests succeeded, but the audit trail has ${changed} more changes`,
        );
      }
      const compared = { core, floor: floor.rate, floorCore: floor.core };
      rounds.push(each.map((load) => ({ ...load, ...compared, ratio: load.rate / floor.rate })));
    }
    return { rounds, megabytes: Math.round(memoryOf(server.pid)) };
  });
  const statements = await withService(true, async (server, targets) => {
    await loadAll(targets, { amount: COUNTED_REQUESTS });
    await server.statements();
    await loadAll(targets, { amount: COUNTED_REQUESTS });
    return (await server.statements()) / (COUNTED_REQUESTS * targets.length);
  });
  return cases.map(({ title }, at) => {
    const own = rounds.flatMap((round) => round[at] ?? []);
    const middle = (name: keyof (typeof own)[number]) => median(own.map((round) => round[name]));
    return {
      title,
      // Answers per second, of the service and in turn with it of the floor.
      ...{ rate: middle("rate"), floor: middle("floor"), ratio: middle("ratio") },
      // Milliseconds of a core for each request: says more than the rate where others use the machine.
      ...{ core: middle("core"), floorCore: middle("floorCore") },
      // Milliseconds until an answer.
      ...{ p50: middle("p50"), p99: middle("p99") },
      ...{ megabytes, statements },
    };
  });
}

/** The figures of each target, and of all targets together: answers per second, and milliseconds of a core for each request. */
async function timed({ pid }: ServerProcess, targets: readonly Target[], seconds: number) {
  const before = coreTimeOf(pid);
  const each = await loadFor(targets, seconds);
  const requests = sum(each.map(({ count }) => count)) + CONNECTIONS;
  return { each, rate: sum(each.map(({ rate }) => rate)), core: (coreTimeOf(pid) - before) / requests };
}

/** How long, in seconds, or how many requests. */
type Limit = { readonly duration: number } | { readonly amount: number };

const loadAll = (targets: readonly Target[], limit: Limit) =>
  Promise.all(targets.map((target) => load(target, limit)));

/** Sends requests for so long, and waits for those that are open then: the next run must not pay for them. */
async function loadFor(targets: readonly Target[], duration: number) {
  const measured = await loadAll(targets, { duration });
  await loadAll(targets, { amount: CONNECTIONS / targets.length });
  return measured;
}

/**
 * Sends requests over open connections, each the next as soon as its answer is there.
 * @throws Error when an answer was no success: what is measured would be something else
 */
async function load({ url, connections, next }: Target, limit: Limit) {
  const times: number[] = [];
  const refused = new Map<number, number>();
  const setupRequest = (request: autocannon.Request): autocannon.Request => {
    const { body, headers, ...rest } = next();
    const type = body === undefined ? {} : { "content-type": "application/json" };
    return { ...request, ...rest, headers: { ...headers, ...type }, ...(body !== undefined && { body }) };
  };
  const result = await new Promise<autocannon.Result>((resolve, reject) => {
    const options = { url, connections, timeout: TIMEOUT, ...limit, requests: [{ setupRequest }] };
    const run = autocannon(options, (error, done) => (error ? reject(error) : resolve(done)));
    // Its own histogram knows whole milliseconds only.
    run.on("response", (_client, status, _bytes, milliseconds) => {
      times.push(milliseconds);
      if (status < 200 || status > 299) refused.set(status, (refused.get(status) ?? 0) + 1);
    });
  });
  if (refused.size > 0 || result.errors > 0) {
    const statuses = [...refused].map(([status, count]) => `${count} times ${status}`).join(", ");
    throw new Error(`Not all requests succeeded: ${statuses || "none refused"}, ${result.errors} errors`);
  }
  const { length: count } = times;
  const [p50, p99] = [percentile(times, 0.5), percentile(times, 0.99)];
  return { count, rate: count / result.duration, p50, p99 };
}

/** The sender of requests for a namespace. */
interface Caller {
  readonly tenant: string;
  readonly headers: Readonly<Record<string, string>>;
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

/** The callers of a case, with tokens as a person gets them. */
async function callersOf(url: string, { namespaces = [] }: Case): Promise<Caller[]> {
  const [first] = namespaces;
  if (first === undefined) return [];
  const session = await login(url, contentsOf(first).owner);
  const callers: Caller[] = [];
  for (const tenant of namespaces.map(tenantOf)) {
    const response = await succeeded(fetch(`${url}/api/auth/token/${tenant}`, { headers: bearer(session) }));
    const { token } = (await response.json()) as { readonly token: string };
    callers.push({ tenant, headers: bearer(token) });
  }
  return callers;
}

/** Logs a seeded user in; gives the token. */
export async function login(url: string, username: string): Promise<string> {
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ username, password: PASSWORD });
  const response = await succeeded(fetch(`${url}/api/login`, { method: "POST", headers, body }));
  return ((await response.json()) as { readonly token: string }).token;
}

async function succeeded(answer: Promise<Response>): Promise<Response> {
  const response = await answer;
  if (response.ok) return response;
  throw new Error(`${response.url} answered ${response.status}: ${await response.text()}`);
}

/** Entries in the audit trails of the callers' namespaces. */
async function changesOf(url: string, callers: readonly Caller[]): Promise<number> {
  let total = 0;
  for (const { tenant, headers } of callers) {
    const audit = `${url}/api/namespaces/${tenant}/audit?per_page=1`;
    const response = await succeeded(fetch(audit, { headers }));
    await response.body?.cancel();
    total += Number(response.headers.get("x-total-count"));
  }
  return total;
}
