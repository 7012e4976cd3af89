import { setTimeout as wait } from "node:timers/promises";
import type { FastifyPluginAsync } from "fastify";
import fastifyPlugin from "fastify-plugin";
import type { Database } from "../db/Database.ts";
import { outageOf } from "../db/outage.ts";
import "../http/declaredAccess.ts";
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

/** How often a write is tried at most, in milliseconds: each one waits for the disk. */
const EVERY = 5_000;
/**
 * How long the failure of a request's write counts, in milliseconds: one that is tried here needs less room than
 * others, and PostgreSQL may have that.
 */
const REMEMBERED = 15_000;
/** How long a probe waits for one, in milliseconds; after that the one before it counts. */
const PATIENCE = 1_000;

/** Tries whether the database can be written, while somebody asks, and remembers what came of it. */
class WriteCheck {
  readonly #database: Pick<Database, "tryWrite">;
  #begun = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | undefined;
  #failure: unknown;
  #seen: { readonly error: unknown; readonly until: number } | undefined;

  constructor(database: Pick<Database, "tryWrite">) {
    this.#database = database;
  }

  /** Takes down what a request failed with. */
  saw(error: unknown): void {
    if (outageOf(error) === "unwritable") this.#seen = { error, until: performance.now() + REMEMBERED };
  }

  /** Why the last write failed; undefined when it did not. */
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
      // Many writes at once are no failure: whoever asks strangers to wait could be taken for ill by them.
      if (!(error instanceof BusyError) && outageOf(error) !== "busy") this.#failure = error;
    } finally {
      this.#running = undefined;
    }
  }
}

/**
 * `/healthz`: the process answers; `/readyz`: the database does too, and can be written, else 503. For probes, without
 * login.
 */
export const healthPlugin = fastifyPlugin(health, { name: "health" });
