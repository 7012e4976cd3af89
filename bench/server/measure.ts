import { join } from "node:path";
import type { Case } from "./cases.ts";
import { type BenchRequest, CONNECTIONS, type Load, load, type Measured } from "./load.ts";
import { FLOOR_COMMAND, memoryOf, SERVICE_COMMAND, type ServerProcess, startProcess } from "./process.ts";
import { NAMESPACES, PASSWORD, tenantOf } from "./seed.ts";

/** Where and how long is measured. */
export interface Run {
  /** Temporary: data folder, database and logs. */
  readonly folder: string;
  readonly url: string;
  readonly seconds: number;
}

export interface Result extends Measured {
  /** Megabytes that the server held at the end. */
  readonly megabytes: number;
  /** SQL statements for each request. */
  readonly statements: number;
}

/** Before anything is measured: the compiler and the caches have done their work by then. */
const WARM_UP_SECONDS = 2;
/** Longest measuring of the floor beside a case. */
const FLOOR_SECONDS = 3;
/** Of the counted run, and of what goes before it. */
const COUNTED_REQUESTS = 48;

type Start = (counting: boolean) => Promise<ServerProcess>;
type Target = Omit<Load, "limit">;

/** What a bare route with one indexed read can do. */
export async function measureFloor(run: Run): Promise<Result> {
  const log = join(run.folder, "floor.log");
  return measure(
    run,
    (counting) => startProcess([FLOOR_COMMAND, run.url], { log, counting }),
    async (server) => floorOf(server),
  );
}

/** Answers per second of the floor at this moment: on a machine that others use, it is another one soon. */
export async function floorRate(run: Run): Promise<number> {
  const server = await startProcess([FLOOR_COMMAND, run.url], { log: join(run.folder, "floor.log") });
  try {
    const target = floorOf(server);
    await load({ ...target, limit: { seconds: WARM_UP_SECONDS } });
    return (await load({ ...target, limit: { seconds: Math.min(run.seconds, FLOOR_SECONDS) } })).rate;
  } finally {
    await server.stop();
  }
}

const floorOf = ({ url }: ServerProcess): Target => ({
  url,
  headers: {},
  next: () => ({ method: "GET", path: "/" }),
});

/** What the service can do of one case. */
export async function measureCase(run: Run, one: Case): Promise<Result> {
  const args = [SERVICE_COMMAND, "serve", "--data-dir", run.folder, "--port", "0"];
  const log = join(run.folder, "service.log");
  const env = { GATEHOUSE_DATABASE_URL: run.url };
  let index = 0;
  const next = (): BenchRequest => one.request(index++);
  return measure(
    run,
    (counting) => startProcess(args, { log, env, counting }),
    async ({ url }) => ({ url, headers: await credential(url, one), next }),
    one.before,
  );
}

/** Memory and speed of a server that is left alone, statements of one that counts them. */
async function measure(
  { seconds }: Run,
  start: Start,
  targetOf: (server: ServerProcess) => Promise<Target>,
  before = 0,
): Promise<Result> {
  const using = async <T>(counting: boolean, work: (server: ServerProcess, target: Target) => Promise<T>) => {
    const server = await start(counting);
    try {
      return await work(server, await targetOf(server));
    } finally {
      await server.stop();
    }
  };
  const measured = await using(false, async (server, target) => {
    if (before > 0) await load({ ...target, limit: { requests: Math.max(before, CONNECTIONS) } });
    await load({ ...target, limit: { seconds: WARM_UP_SECONDS } });
    // Requests that the warm-up left open are answered first.
    await load({ ...target, limit: { requests: CONNECTIONS } });
    const result = await load({ ...target, limit: { seconds } });
    return { ...result, megabytes: memoryOf(server.pid) };
  });
  const statements = await using(true, async (server, target) => {
    const limit = { requests: COUNTED_REQUESTS };
    await load({ ...target, limit });
    await server.statements();
    await load({ ...target, limit });
    return (await server.statements()) / COUNTED_REQUESTS;
  });
  return { ...measured, statements };
}

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
