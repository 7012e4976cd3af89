import { join } from "node:path";
import type { Case } from "./case.ts";
import type { BenchRequest, Load } from "./load.ts";
import { contentsOf, PASSWORD, tenantOf } from "./namespaces.ts";
import { FLOOR_COMMAND, SERVICE_COMMAND, type ServerProcess, startProcess } from "./process.ts";

/** Where requests go to, and which. */
export type Target = Omit<Load, "limit">;

/**
 * The requests of a case. Their numbers go on from one server to the next one of the same database: what a request has
 * deleted, the next one cannot delete.
 */
export interface Stream {
  readonly asked: Case;
  readonly connections: number;
  /** Number of the next request. */
  index: number;
}

/** A server that is asked what the streams have. */
export interface Service {
  readonly server: ServerProcess;
  /** One for each stream. */
  readonly targets: readonly Target[];
  /** Entries in the audit trails of the case's namespaces. */
  changes(): Promise<number>;
}

export interface ServiceOptions {
  /** Temporary: data folder and log. */
  readonly folder: string;
  /** Of the database. */
  readonly url: string;
  /** Count SQL statements. */
  readonly counting: boolean;
}

// All requests come from one address, and make more rules than a namespace may have.
const WITHOUT_LIMITS = {
  GATEHOUSE_LOGINS_PER_ADDRESS: "0",
  GATEHOUSE_LOGINS_PER_ACCOUNT: "0",
  GATEHOUSE_REPORTS_PER_ADDRESS: "0",
  GATEHOUSE_MAXIMUM_FIREWALL_RULES: "0",
};

/** Runs work with a server of its own, for a case and for what is asked beside it. */
export async function withService<T>(
  { folder, url, counting }: ServiceOptions,
  streams: readonly Stream[],
  work: (service: Service) => Promise<T>,
): Promise<T> {
  const bare = streams.some(({ asked }) => asked.bare);
  const args = bare
    ? [...FLOOR_COMMAND, url]
    : [SERVICE_COMMAND, "serve", "--data-dir", folder, "--port", "0"];
  const server = await startProcess(args, {
    log: join(folder, "service.log"),
    env: { GATEHOUSE_DATABASE_URL: url, ...WITHOUT_LIMITS },
    counting,
  });
  try {
    const callers = await Promise.all(streams.map(({ asked }) => callersOf(server.url, asked)));
    const targets = streams.map((stream, at) => targetOf(server.url, stream, callers[at] ?? []));
    return await work({ server, targets, changes: () => changesOf(server.url, callers[0] ?? []) });
  } finally {
    await server.stop();
  }
}

function targetOf(url: string, stream: Stream, callers: readonly Caller[]): Target {
  const next = (): BenchRequest => {
    const { index, asked } = stream;
    stream.index += 1;
    const request = asked.request(index);
    return { ...request, headers: { ...callers[index % callers.length]?.headers, ...request.headers } };
  };
  return { url, connections: stream.connections, next };
}

/** Who sends requests for a namespace. */
interface Caller {
  readonly tenant: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The callers of a case, with tokens as a person gets them. */
async function callersOf(url: string, { namespaces = [] }: Case): Promise<Caller[]> {
  const [first] = namespaces;
  if (first === undefined) return [];
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ username: contentsOf(first).owner, password: PASSWORD });
  const session = await tokenOf(await fetch(`${url}/api/login`, { method: "POST", headers, body }));
  const callers: Caller[] = [];
  for (const tenant of namespaces.map(tenantOf)) {
    const switched = await fetch(`${url}/api/auth/token/${tenant}`, { headers: bearer(session) });
    callers.push({ tenant, headers: bearer(await tokenOf(switched)) });
  }
  return callers;
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

async function tokenOf(response: Response): Promise<string> {
  await requireSuccess(response);
  return ((await response.json()) as { token: string }).token;
}

async function requireSuccess(response: Response): Promise<void> {
  if (!response.ok) throw new Error(`${response.url} answered ${response.status}: ${await response.text()}`);
}

async function changesOf(url: string, callers: readonly Caller[]): Promise<number> {
  let sum = 0;
  for (const { tenant, headers } of callers) {
    const response = await fetch(`${url}/api/namespaces/${tenant}/audit?per_page=1`, { headers });
    await requireSuccess(response);
    await response.body?.cancel();
    sum += Number(response.headers.get("x-total-count"));
  }
  return sum;
}
