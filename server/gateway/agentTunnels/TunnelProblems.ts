import { MINUTE } from "@gatehouse-access/sdk/times";
import type { FastifyBaseLogger, FastifyInstance } from "fastify";
import { LRUCache } from "lru-cache";
import { readRows, sql } from "../../db/sql/sql.ts";
import { UnauthenticatedError } from "../../errors.ts";
import { readCredential } from "../../http/access/authenticate.ts";
import type { Services } from "../../services.ts";

/**
 * Limits of the log lines about problems. `every` is the minimum time, in milliseconds, between two log lines about the
 * same device. It is necessary because agents retry every 10 seconds. `devices` is the maximum number of devices for
 * which the service stores the time of the last line.
 */
const LOGGED = { every: 10 * MINUTE, devices: 100_000 };
/** The end of the paths at which agents request a tunnel. The start of the path depends on the agent's version. */
const TUNNEL_PATH = /^\/[^/?]{1,50}\/connection$/;

/** Remedies, by the status of the response that refuses a tunnel. */
const REMEDIES: Readonly<Record<number, string>> = {
  400: "Configure the proxy to forward the headers Upgrade and Connection.",
  401: "Restart the agent, so that the device enrolls again. If the namespace requires a proof of devices, use an agent that signs challenges.",
  404: "Use an agent version that the service supports. The service serves /ssh/connection and /agent/connection.",
  429: "If several machines use the same MAC address and private key, give each machine its own. Accept or reject pending devices.",
};

/** Logs why agents have no working tunnel: refused requests, and violations of the tunnel protocol. */
export class TunnelProblems {
  readonly #services: Services;
  readonly #log: () => FastifyBaseLogger;
  readonly #logged = new LRUCache<string, true>({ max: LOGGED.devices, ttl: LOGGED.every });

  constructor(services: Services, log: () => FastifyBaseLogger) {
    this.#services = services;
    this.#log = log;
  }

  /** Logs the app's responses that refuse a tunnel to a device with a valid token. */
  watch(app: FastifyInstance): void {
    app.addHook("onResponse", async ({ method, url, headers }, { statusCode: status }) => {
      const path = url.split("?", 1)[0] ?? "";
      if (method !== "GET" || status < 400 || status >= 500 || !TUNNEL_PATH.test(path)) return;
      try {
        const credential = await readCredential(this.#services, headers);
        if (credential.kind !== "token" || credential.claims.claims !== "device") return;
        await this.note(credential.claims.uid, { path, status, remedy: REMEDIES[status] });
      } catch (error) {
        if (!(error instanceof UnauthenticatedError)) throw error;
      }
    });
  }

  /**
   * Logs a problem of a device's agent, with the agent's version. Logs nothing if a problem of the same device was
   * logged a short time ago.
   */
  async note(uid: string, problem: Readonly<Record<string, unknown>>): Promise<void> {
    if (this.#logged.has(uid)) return;
    this.#logged.set(uid, true);
    const [device = {}] = await readRows<{ readonly tenant: string; readonly version: string }>(
      this.#services.db,
      sql`SELECT "tenantId" AS "tenant", "infoVersion" AS "version" FROM "Device" WHERE "uid" = ${uid}`,
    );
    this.#log().warn({ device: uid, ...device, ...problem }, "an agent cannot keep a tunnel open");
  }
}
