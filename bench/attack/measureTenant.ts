import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { Client, request } from "undici";
import { hashPassword } from "../../server/dist/secrets/passwords.js";
import type { TestIssuer } from "../../test/support/issuer.ts";
import { percentile } from "../measuring.ts";
import { startService } from "../processes.ts";
import type { BenchRequest } from "../server/cases.ts";
import { fill, storedTime } from "../server/databases.ts";
import { login, namespaceToken } from "../server/measure.ts";
import { contentsOf, type NamespaceName, PASSWORD, tenantOf } from "../server/namespaces.ts";
import { LIST } from "./attacker.ts";
import type { TenantOrder } from "./tenantAttacker.ts";
import { hostileName } from "./tenants/tenantCase.ts";
import { TENANT_CASES, type TenantCaseName } from "./tenants/tenantCases.ts";

/** The namespace of the other tenant, whose response times are measured. */
export const OTHER_NAMESPACE = "keys" satisfies NamespaceName;

/** Goals. The response times of the other tenant may be three times the idle times, or at most 60 ms. */
export const GOAL = {
  ratio: 3,
  p99: 60,
  /** Longest time for which the service may handle no other event, in milliseconds. */
  block: 50,
} as const;
/**
 * Interval of the timer that the metric of the event loop uses, in milliseconds. The metric contains up to one interval
 * more than the time for which the event loop was blocked.
 */
const METRIC_INTERVAL = 10;
/** Maximum time for a response, in milliseconds. */
const PATIENCE = 120_000;

const tenantIdOf = (name: TenantCaseName): string =>
  `00000000-0000-4000-8001-${String(Object.keys(TENANT_CASES).indexOf(name)).padStart(9, "0")}000`;

/** Response times in milliseconds, and the longest block of the event loop in the same time. */
interface Figures {
  readonly p50: number;
  readonly p99: number;
  readonly worst: number;
  readonly block: number;
}

/** The result of a case. */
export interface TenantResult {
  readonly title: string;
  readonly idle: Figures;
  readonly attacked: Figures;
  /** Whether the figures reach the goals for response times and for blocks. */
  readonly reachesP99: boolean;
  readonly reachesBlock: boolean;
  /** Number of responses to the other tenant that are not 200, by status. */
  readonly refused: Readonly<Record<string, number>>;
  /** Number of results of the attacker. */
  readonly results: Readonly<Record<string, number>>;
}

/** The input of a measurement. */
interface Run {
  /** Folder of the service. */
  readonly folder: string;
  /** URL of the database, which contains the other tenant. */
  readonly url: string;
  readonly seconds: number;
  readonly issuer: TestIssuer;
}

/** Adds the hostile tenant of a case to the database. */
async function addTenant({ url, issuer }: Run, name: TenantCaseName): Promise<void> {
  const [tenantId, user] = [tenantIdOf(name), hostileName(name).toLowerCase()];
  const now = storedTime(Date.now());
  const passwordHash = await hashPassword(PASSWORD);
  await fill(url, async (insert) => {
    const email = `${user}@example.com`;
    await insert("User", 1, () => ({
      id: user,
      username: user,
      name: user,
      email,
      passwordHash,
      createdAt: now,
    }));
    await insert("Namespace", 1, () => ({ tenantId, name: user, ownerId: user, createdAt: now }));
    await insert("Member", 1, () => ({ tenantId, userId: user, role: "owner", addedAt: now }));
    const otherTenantId = tenantOf(OTHER_NAMESPACE);
    await TENANT_CASES[name].seed?.({ insert, tenantId, ownerId: user, otherTenantId, issuer, now });
  });
}

/** Returns the longest block of the event loop since the last call, in milliseconds. */
async function longestBlock(metrics: string): Promise<number> {
  // Each call uses a new connection, because a blocked service closes idle connections late.
  const { body } = await request(metrics, { reset: true, headersTimeout: PATIENCE });
  const text = await body.text();
  const [, seconds] = /^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec(text) ?? [];
  if (seconds === undefined) throw new Error("the service has no metric of its event loop");
  return Number(seconds) * 1000;
}

/** Sends requests of the other tenant one after the other, and measures their response times. */
class OtherTenant {
  readonly #client: Client;
  readonly #metrics: string;
  readonly #next: (index: number) => BenchRequest;
  #sent = 0;
  readonly refused: Record<string, number> = {};

  constructor(url: string, metrics: string, next: (index: number) => BenchRequest) {
    this.#client = new Client(url, { headersTimeout: PATIENCE, bodyTimeout: PATIENCE });
    this.#metrics = metrics;
    this.#next = next;
  }

  /**
   * Measures requests for a time.
   * @param begin begins the attack, after the metric of the event loop is reset: the first request of an attack can
   * block the service
   */
  async measure(seconds: number, begin: () => Promise<unknown> = async () => {}): Promise<Figures> {
    await longestBlock(this.#metrics);
    await begin();
    const times: number[] = [];
    const end = performance.now() + seconds * 1000;
    while (performance.now() < end) {
      const started = performance.now();
      const result = await this.#send();
      times.push(performance.now() - started);
      if (result !== "200") this.refused[result] = (this.refused[result] ?? 0) + 1;
      await sleep(5);
    }
    const [p50, p99, worst] = [percentile(times, 0.5), percentile(times, 0.99), percentile(times, 1)];
    return { p50, p99, worst, block: await longestBlock(this.#metrics) };
  }

  /** Sends the next request. Returns the status of the response. */
  async #send(): Promise<string> {
    const { headers = {}, ...next } = this.#next(this.#sent);
    this.#sent += 1;
    try {
      const { statusCode, body } = await this.#client.request({ ...next, headers: { ...headers } });
      await body.dump();
      return String(statusCode);
    } catch {
      return "no response";
    }
  }

  close(): Promise<void> {
    return this.#client.destroy();
  }
}

/** Returns the values of a line in the service's log. */
function logged(folder: string, pattern: RegExp): string {
  const [, found] = pattern.exec(readFileSync(join(folder, "service.log"), "utf8")) ?? [];
  if (found === undefined) throw new Error(`the service did not log ${pattern}`);
  return found;
}

/**
 * Measures a case on a new service: first the response times of the other tenant without an attack, then during the
 * attack.
 */
export async function measureTenant(run: Run, name: TenantCaseName): Promise<TenantResult> {
  const { folder, url, seconds, issuer } = run;
  const one = TENANT_CASES[name];
  await addTenant(run, name);
  const service = await startService(folder, {
    log: join(folder, "service.log"),
    env: {
      GATEHOUSE_DATABASE_URL: url,
      GATEHOUSE_METRICS_ADDRESS: "127.0.0.1:0",
      GATEHOUSE_SSH_PORT: "0",
      GATEHOUSE_WORKLOAD_ISSUER_NETWORKS: "127.0.0.0/8",
      NODE_EXTRA_CA_CERTS: issuer.caFile,
      ...one.env,
    },
  });
  const stops: (() => Promise<unknown> | unknown)[] = [() => service.stop()];
  try {
    const metrics = `${logged(folder, /metrics open at ([^"]+)"/)}/metrics`;
    const tenantId = tenantIdOf(name);
    const user = hostileName(name).toLowerCase();
    const token = await namespaceToken(service.url, await login(service.url, user), tenantId);
    const sshPort = Number(logged(folder, /^\{(?=.*"msg":"listening for SSH").*"port":(\d+).*\}$/m));
    const place = { url: service.url, sshPort, tenantId, namespace: user, token };
    const onEnd = (stop: () => Promise<unknown> | unknown) => void stops.push(stop);
    const prepared = await one.prepare?.({
      ...place,
      otherTenantId: tenantOf(OTHER_NAMESPACE),
      issuer,
      onEnd,
    });
    const { owner } = contentsOf(OTHER_NAMESPACE);
    const authorization = `Bearer ${await login(service.url, owner)}`;
    const list: BenchRequest = { method: "GET", path: LIST, headers: { authorization } };
    const other = new OtherTenant(service.url, metrics, (index) => one.other?.(prepared, index) ?? list);
    stops.push(() => other.close());
    await other.measure(1);
    const idle = await other.measure(seconds);
    const order: TenantOrder = { ...place, name, prepared };
    const script = new URL("./tenantAttacker.ts", import.meta.url);
    const attacker = new Worker(script, { workerData: order });
    stops.push(() => attacker.terminate());
    const attacked = await other.measure(seconds, () => once(attacker, "message"));
    const counted = once(attacker, "message");
    attacker.postMessage("count");
    const [results] = (await counted) as [Record<string, number>];
    return {
      title: one.title,
      idle,
      attacked,
      reachesP99: attacked.p99 <= Math.max(GOAL.p99, GOAL.ratio * idle.p99),
      reachesBlock: attacked.block <= GOAL.block + METRIC_INTERVAL,
      refused: other.refused,
      results,
    };
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}
