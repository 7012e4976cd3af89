import { setTimeout as wait } from "node:timers/promises";
import type { FastifyPluginAsync } from "fastify";
import fastifyPlugin from "fastify-plugin";
import type { Database } from "../db/Database.ts";
import { outageOf } from "../db/outage.ts";
import "../http/access/declaredAccess.ts";
import { BusyError } from "../errors.ts";

const options = {
  logLevel: "warn",
  config: { publicBecause: "probes have no login, and learn one word" },
} as const;

const health: FastifyPluginAsync<{ database: Pick<Database, "client" | "tryWrite"> }> = async (
  app,
  { database },
) => {
  const writes = new WriteCheck(database);
  app.addHook("onError", async (_request, _reply, error) => writes.saw(error));
  app.get("/healthz", options, async () => ({ status: "ok" }));

  app.get("/readyz", options, async (request, reply) => {
    const refuse = (message: string, error: unknown) => {
      request.log.error({ err: error }, message);
      return reply.code(503).send({ message });
    };
    try {
      await database.client.$queryRaw`SELECT 1`;
    } catch (error) {
      return refuse("the database does not answer", error);
    }
    const failure = await writes.failure();
    return failure === undefined ? { status: "ok" } : refuse("the database cannot be written", failure);
  });
};

/** Minimum interval between two trial writes, in milliseconds: each waits for the disk. */
const EVERY = 5_000;
/**
 * How long the failed write of a request counts, in milliseconds: a trial write needs less room than others, and may
 * succeed on PostgreSQL.
 */
const REMEMBERED = 15_000;
/** How long a probe waits for a trial write, in milliseconds; after that the previous result counts. */
const PATIENCE = 1_000;

/** Tries to write to the database while probes ask, and remembers the result. */
class WriteCheck {
  readonly #database: Pick<Database, "tryWrite">;
  #begun = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | undefined;
  #failure: unknown;
  #seen: { readonly error: unknown; readonly until: number } | undefined;

  constructor(database: Pick<Database, "tryWrite">) {
    this.#database = database;
  }

  /** Notes the error of a request. */
  saw(error: unknown): void {
    if (outageOf(error) === "unwritable") this.#seen = { error, until: performance.now() + REMEMBERED };
  }

  /** The error of the last write; undefined if it succeeded. */
  async failure(): Promise<unknown> {
    const now = performance.now();
    if (this.#running === undefined && now - this.#begun >= EVERY) {
      this.#begun = now;
      this.#running = this.#run();
    }
    await Promise.race([this.#running, wait(PATIENCE, undefined, { ref: false })]);
    return this.#failure ?? (this.#seen && this.#seen.until > now ? this.#seen.error : undefined);
  }

  async #run(): Promise<void> {
    try {
      await this.#database.tryWrite();
      this.#failure = undefined;
    } catch (error) {
      // A busy database is no failure: a service that asks for retries must not look ill to its probes.
      if (!(error instanceof BusyError) && outageOf(error) !== "busy") this.#failure = error;
    } finally {
      this.#running = undefined;
    }
  }
}

/**
 * `/healthz`: the process responds; `/readyz`: the database does too and can be written, else 503. For probes, without
 * login.
 */
export const healthPlugin = fastifyPlugin(health, { name: "health" });
