import { join } from "node:path";
import autocannon from "autocannon";
import { boundedStart } from "../../server/dist/process/boundMemory.js";
import { coreTimeOf, median, memoryOf, percentile, sum } from "../measuring.ts";
import { type ServerProcess, startServer, startService } from "../processes.ts";
import type { BenchRequest, Case } from "./cases.ts";
import { contentsOf, PASSWORD, tenantOf } from "./namespaces.ts";

/** Total number of concurrent requests to a server. */
export const CONNECTIONS = 16;

/**
 * Duration of the warm-up load before each measurement, in seconds. The warm-up compiles the code and fills the caches.
 */
const WARM_UP_SECONDS = 2;
/** Maximum duration of a measurement of the baseline server in each round, in seconds. */
const FLOOR_SECONDS = 3;
/** Number of requests in the run with counted statements, and also in the warm-up run before it. */
const COUNTED_REQUESTS = 48;
/** Maximum time for a response, in seconds. */
const TIMEOUT = 120;

// The default limits do not allow the load: all requests come from one address, and a case creates many firewall rules.
const WITHOUT_LIMITS = {
  GATEHOUSE_LOGINS_PER_ADDRESS: "0",
  GATEHOUSE_LOGINS_PER_ACCOUNT: "0",
  GATEHOUSE_REPORTS_PER_ADDRESS: "0",
  GATEHOUSE_MAXIMUM_FIREWALL_RULES: "0",
};

/** The settings of a benchmark run. */
interface Run {
  /** Temporary folder for data, database and logs. */
  readonly folder: string;
  /** URL of the database. */
  readonly url: string;
  readonly seconds: number;
  readonly rounds: number;
  /** The baseline server for the comparison, which runs during all cases. */
  readonly floor: ServerProcess;
}

/** A server and the requests that are sent to it. */
interface Target {
  readonly url: string;
  /** Number of concurrent requests. */
  readonly connections: number;
  readonly next: () => BenchRequest;
}

const targetsOf = (floor: ServerProcess): readonly Target[] => [
  { url: floor.url, connections: CONNECTIONS, next: () => ({ method: "GET", path: "/" }) },
];

/**
 * Starts the baseline server and sends requests to warm it up. The baseline server has the same Node.js flags as the
 * service.
 */
export async function startFloor(folder: string, url: string): Promise<ServerProcess> {
  const program = join(import.meta.dirname, "floor.ts");
  const { flags } = boundedStart([], {});
  const floor = await startServer([...flags, program, url], { log: join(folder, "floor.log") });
  await loadFor(targetsOf(floor), WARM_UP_SECONDS);
  return floor;
}

/**
 * Measures a case, and its second case at the same time if there is one. A second service process counts the SQL
 * statements, since counting slows the service. CPU time and statements cover the requests of both cases.
 * @returns medians of the rounds
 */
export async function measureCase(run: Run, one: Case) {
  const cases = one.beside ? [one, one.beside] : [one];
  // The second service process continues the request numbers of the first. Otherwise, requests would try to delete
  // objects that earlier requests have deleted.
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
      // The baseline is measured in each round, since the speed of a shared machine changes over time.
      const floor = await timed(run.floor, targetsOf(run.floor), Math.min(run.seconds, FLOOR_SECONDS));
      const before = one.changes ? await changes() : 0;
      const { each, core } = await timed(server, targets, run.seconds);
      const changed = one.changes ? (await changes()) - before : 0;
      // A request that changes nothing is a different operation, so the measurement fails.
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
      // Responses per second of the service and of the baseline server, measured in turn.
      rate: middle("rate"),
      floor: middle("floor"),
      ratio: middle("ratio"),
      // CPU time per request, in milliseconds. On a shared machine, the CPU time is more reliable than the rate.
      core: middle("core"),
      floorCore: middle("floorCore"),
      // Response times, in milliseconds.
      p50: middle("p50"),
      p99: middle("p99"),
      megabytes,
      statements,
    };
  });
}

/**
 * Sends the requests of all targets to a server, and returns the results for each target, the total responses per
 * second, and the CPU time per request in milliseconds.
 */
async function timed({ pid }: ServerProcess, targets: readonly Target[], seconds: number) {
  const before = coreTimeOf(pid);
  const each = await loadFor(targets, seconds);
  const requests = sum(each.map(({ count }) => count)) + CONNECTIONS;
  return { each, rate: sum(each.map(({ rate }) => rate)), core: (coreTimeOf(pid) - before) / requests };
}

/** The end of a run: a duration in seconds, or a number of requests. */
type Limit = { readonly duration: number } | { readonly amount: number };

const loadAll = (targets: readonly Target[], limit: Limit) =>
  Promise.all(targets.map((target) => load(target, limit)));

/**
 * Sends requests for a duration. Then waits for the responses to open requests, so that these do not slow down the next
 * run.
 */
async function loadFor(targets: readonly Target[], duration: number) {
  const measured = await loadAll(targets, { duration });
  await loadAll(targets, { amount: CONNECTIONS / targets.length });
  return measured;
}

/**
 * Sends requests over open connections. Each connection sends the next request after the previous response.
 * @throws Error a response was not successful, so the measurement is not valid
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
    // The times are collected here, because autocannon's own histogram has only whole milliseconds.
    run.on("response", (_client, status, _bytes, milliseconds) => {
      times.push(milliseconds);
      if (status < 200 || status > 299) refused.set(status, (refused.get(status) ?? 0) + 1);
    });
  });
  if (refused.size > 0 || result.errors > 0) {
    const statuses = [...refused].map(([status, count]) => `${count} × ${status}`).join(", ");
    throw new Error(`Not all requests succeeded: ${statuses || "none refused"}, ${result.errors} errors`);
  }
  const { length: count } = times;
  const [p50, p99] = [percentile(times, 0.5), percentile(times, 0.99)];
  return { count, rate: count / result.duration, p50, p99 };
}

/** A namespace and the credential for requests to it. */
interface Caller {
  readonly tenant: string;
  readonly headers: Readonly<Record<string, string>>;
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

/** Logs in, and returns the namespaces of a case with their credentials. */
async function callersOf(url: string, { namespaces = [] }: Case): Promise<Caller[]> {
  const [first] = namespaces;
  if (first === undefined) return [];
  const session = await login(url, contentsOf(first).owner);
  const callers: Caller[] = [];
  for (const tenant of namespaces.map(tenantOf)) {
    callers.push({ tenant, headers: bearer(await namespaceToken(url, session, tenant)) });
  }
  return callers;
}

/** Returns a token of a logged-in user for one of the user's namespaces. */
export async function namespaceToken(url: string, session: string, tenant: string): Promise<string> {
  const response = await succeeded(fetch(`${url}/api/auth/token/${tenant}`, { headers: bearer(session) }));
  return ((await response.json()) as { readonly token: string }).token;
}

/** Logs in a seeded user. Returns the token. */
export async function login(url: string, username: string): Promise<string> {
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ username, password: PASSWORD });
  const response = await succeeded(fetch(`${url}/api/login`, { method: "POST", headers, body }));
  return ((await response.json()) as { readonly token: string }).token;
}

async function succeeded(pending: Promise<Response>): Promise<Response> {
  const response = await pending;
  if (response.ok) return response;
  throw new Error(`${response.url} returned ${response.status}: ${await response.text()}`);
}

/** Returns the number of entries in the audit trails of the callers' namespaces. */
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
