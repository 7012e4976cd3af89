import { chmodSync } from "node:fs";
import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import { buildAdminServer } from "./admin/adminServer.ts";
import { prepareSocketPath, removeSocket } from "./admin/socketPath.ts";
import { buildApp } from "./app.ts";
import type { Config } from "./config.ts";
import { prepareDataFolder } from "./dataFolder.ts";
import { openDatabase } from "./db/openDatabase.ts";
import { healthPlugin } from "./health.ts";
import { loadSigningKeys } from "./keys.ts";
import { loggerOptions } from "./logging.ts";
import { OperatorError } from "./OperatorError.ts";
import type { Services } from "./services.ts";

/** How often connections that have become idle are closed while the service stops, in milliseconds. */
const IDLE_SWEEP = 100;

/** A service that accepts requests. */
export interface RunningService {
  readonly log: FastifyInstance["log"];
  /** Lets requests in flight end, within the configured time, and gives back everything that it holds. */
  stop(): Promise<void>;
}

/**
 * Starts the service: data folder, database (which makes this process the folder's owner), signing key, then
 * the two servers. What was already begun is undone when a later step fails.
 * @throws OperatorError saying what is wrong with the folder, the database, the key or the address
 */
export async function serve(config: Config): Promise<RunningService> {
  const undo: (() => Promise<void> | void)[] = [];
  const stop = async () => {
    for (let step = undo.pop(); step; step = undo.pop()) {
      try {
        await step();
      } catch (error) {
        // What is left is given back all the same.
        await stop();
        throw error;
      }
    }
  };
  try {
    // Files of the service are for its user alone, those that SQLite and the socket make included.
    process.umask(0o077);
    prepareDataFolder(config.dataDir);
    const database = await openDatabase({ file: config.databaseFile });
    undo.push(() => database.close());
    const socket = await prepareSocketPath(config.dataDir);
    undo.push(() => removeSocket(config.dataDir));
    const { made, ...keys } = await loadSigningKeys(config.dataDir);
    const services: Services = {
      db: database.client,
      keys,
      settings: config.service,
      now: () => new Date(),
    };

    const app = await buildApp(services, { logger: loggerOptions(config.logLevel) });
    await app.register(healthPlugin, { services });
    if (database.migrated.length > 0) app.log.info({ migrations: database.migrated }, "database migrated");
    if (made) app.log.info("signing key made");

    const admin = buildAdminServer(services, { logger: app.log, address: () => browserAddress(app) });
    undo.push(() => closeInTime([app, admin], config.shutdownTimeout));
    await admin.listen({ path: socket, listenTextResolver: () => "administration socket open" });
    chmodSync(socket, 0o600);

    await listen(app, config);
    app.log.info({ address: httpAddress(app), dataDir: config.dataDir }, "listening");
    return { log: app.log, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function listen(app: FastifyInstance, { host, port }: Config): Promise<void> {
  try {
    await app.listen({ host, port, listenTextResolver: () => "service open" });
  } catch (error) {
    if (!(error instanceof Error) || !("syscall" in error)) throw error;
    throw new OperatorError(`Cannot listen on ${host} port ${port} (--host, --port): ${error.message}`, {
      cause: error,
    });
  }
}

/** Ends all servers at a time. Requests that have not ended when the time is up are cut off. */
async function closeInTime(servers: readonly FastifyInstance[], milliseconds: number): Promise<void> {
  const timer = setTimeout(() => {
    servers[0]?.log.warn("requests did not end in time and are cut off");
    for (const { server } of servers) server.closeAllConnections();
  }, milliseconds);
  // A connection whose request has ended waits for another one; Fastify closes idle ones only at the beginning.
  const sweep = setInterval(() => {
    for (const { server } of servers) server.closeIdleConnections();
  }, IDLE_SWEEP);
  try {
    await Promise.all(servers.map((server) => server.close()));
  } finally {
    clearInterval(sweep);
    clearTimeout(timer);
  }
}

function httpAddress(app: FastifyInstance): string {
  const { address, family, port } = app.server.address() as AddressInfo;
  return `http://${family === "IPv6" ? `[${address}]` : address}:${port}`;
}

/** The address for a browser on this machine, which cannot open "every address". */
function browserAddress(app: FastifyInstance): string {
  return httpAddress(app).replace("://0.0.0.0:", "://localhost:").replace("://[::]:", "://localhost:");
}
