import { setTimeout as wait } from "node:timers/promises";
import type { FastifyPluginAsync } from "fastify";
import fastifyPlugin from "fastify-plugin";
import type { Database } from "../db/Database.ts";
import { outageOf } from "../db/outage.ts";
import type { GatewayCondition } from "../gateway/GatewayProcess.ts";
import "../http/access/declaredAccess.ts";
import { outageOfWork } from "../errors.ts";

const options = {
  logLevel: "warn",
  config: { publicBecause: "probes have no login, and the response contains one word" },
} as const;

/** The parts of the service that the probes check. */
interface HealthOptions {
  readonly database: Pick<Database, "client" | "tryWrite">;
  /**
   * The SSH gateway. Undefined if the service has no SSH port. Without an SSH port, the gateway process serves only web
   * terminals. Their problems must not make a load balancer stop routing API requests.
   */
  readonly gateway?: { readonly condition: GatewayCondition } | undefined;
  /** Returns true after the service has begun to stop. @default always returns false */
  readonly isStopping?: () => boolean;
}

/**
 * The reason why a service is not ready, for each condition of its SSH gateway. Undefined for the condition `ready`.
 */
const GATEWAY_PROBLEMS: Readonly<Record<GatewayCondition, string | undefined>> = {
  "not started": "the SSH gateway does not listen yet",
  ready: undefined,
  restarting: "the SSH gateway is being restarted",
  unresponsive: "the SSH gateway does not respond",
};

const health: FastifyPluginAsync<HealthOptions> = async (
  app,
  { database, gateway, isStopping = () => false },
) => {
  const writes = new WriteCheck(database);
  app.addHook("onError", async (_request, _reply, error) => writes.noteError(error));
  app.get("/healthz", options, async () => ({ status: "ok" }));

  app.get("/readyz", options, async (request, reply) => {
    const unavailable = (message: string, error: unknown) => {
      request.log.error({ err: error }, message);
      return reply.code(503).send({ message });
    };
    // Do not log these reasons at each probe, because the log already contains the cause: the stop of the service, or
    // the end and restart of the gateway process.
    const reason = isStopping()
      ? "the service is being stopped"
      : gateway && GATEWAY_PROBLEMS[gateway.condition];
    if (reason !== undefined) return reply.code(503).send({ message: reason });
    try {
      await database.client.$queryRaw`SELECT 1`;
    } catch (error) {
      return unavailable("the database does not respond", error);
    }
    const failure = await writes.failure();
    return failure === undefined ? { status: "ok" } : unavailable("the database cannot be written", failure);
  });
};

/**
 * Minimum interval between two trial writes, in milliseconds. The limit is necessary because each trial write waits for
 * the disk.
 */
const MIN_INTERVAL = 5_000;
/**
 * Time, in milliseconds, for which the service is treated as not ready after a write of a request has failed. A trial
 * write needs less disk space than other writes, so on PostgreSQL it may succeed although other writes fail.
 */
const REMEMBERED = 15_000;
/**
 * Maximum time, in milliseconds, for which a probe waits for a trial write. After this time, the probe uses the
 * previous result.
 */
const PROBE_WAIT = 1_000;

/**
 * Checks with a trial write whether the database can be written. Makes the check when a probe arrives, and stores the
 * result.
 */
class WriteCheck {
  readonly #database: Pick<Database, "tryWrite">;
  #begun = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | undefined;
  #failure: unknown;
  #seen: { readonly error: unknown; readonly until: number } | undefined;

  constructor(database: Pick<Database, "tryWrite">) {
    this.#database = database;
  }

  /** Records the error of a request if it shows that the database cannot be written. */
  noteError(error: unknown): void {
    if (outageOf(error) === "unwritable") this.#seen = { error, until: performance.now() + REMEMBERED };
  }

  /**
   * Returns the error of the last trial write, or of a request's write that failed recently. Returns undefined if there
   * is no such error.
   */
  async failure(): Promise<unknown> {
    const now = performance.now();
    if (this.#running === undefined && now - this.#begun >= MIN_INTERVAL) {
      this.#begun = now;
      this.#running = this.#run();
    }
    await Promise.race([this.#running, wait(PROBE_WAIT, undefined, { ref: false })]);
    return this.#failure ?? (this.#seen && this.#seen.until > now ? this.#seen.error : undefined);
  }

  async #run(): Promise<void> {
    try {
      await this.#database.tryWrite();
      this.#failure = undefined;
    } catch (error) {
      // A busy database is not a failure, because a service that responds with retryable errors must stay ready.
      if (outageOfWork(error) !== "busy") this.#failure = error;
    } finally {
      this.#running = undefined;
    }
  }
}

/**
 * Adds the routes for probes. Probes need no login. `/healthz` responds while the process runs. `/readyz` responds with
 * 200 only if the service is not stopping, the SSH gateway accepts logins, and the database responds and can be
 * written. Otherwise `/readyz` responds with 503 and the reason.
 */
export const healthPlugin = fastifyPlugin(health, { name: "health" });
