import { chmodSync } from "node:fs";
import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import { buildAdminServer } from "./admin/adminServer.ts";
import { prepareSocketPath, removeSocket } from "./admin/socketPath.ts";
import { buildApp } from "./app.ts";
import type { Config } from "./config.ts";
import { prepareDataFolder } from "./dataFolder.ts";
import { openDatabase } from "./db/openDatabase.ts";
import { trimAuditTrail } from "./features/audit/retention.ts";
import { Heartbeats } from "./features/devices/heartbeats.ts";
import { healthPlugin } from "./health.ts";
import { instanceSecret } from "./instanceSecret.ts";
import { buildInternalApp } from "./internalApp.ts";
import { loggerOptions } from "./logging.ts";
import { OperatorError } from "./OperatorError.ts";
import { sealerOf } from "./sealer.ts";
import type { Services } from "./services.ts";
import { DatabaseSigningKeys } from "./signingKeys.ts";
import { type Chore, startChores } from "./upkeep.ts";

/** A service that accepts requests. */
export interface RunningService {
  readonly log: FastifyInstance["log"];
  /** Lets requests in flight end, within the configured time, and gives back everything that it holds. */
  stop(): Promise<void>;
}

/**
 * Starts the service: data folder, database (which makes this process the folder's owner), signing key, then
 * the servers. What was already begun is undone when a later step fails.
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
    const database = await openDatabase(config.database);
    undo.push(() => database.close());
    const socket = await prepareSocketPath(config.dataDir);
    undo.push(() => removeSocket(config.dataDir));
    const base = {
      db: database.client,
      sealer: sealerOf(instanceSecret(config.dataDir, config.secret)),
      now: () => new Date(),
      heartbeats: new Heartbeats(database.client, (error) => {
        app.log.error({ err: error }, "reports of devices could not be written, and will be later");
      }),
    };
    const keys = await DatabaseSigningKeys.load(base);
    const services: Services = { ...base, keys, settings: config.service };
    await trimAuditTrail(services, config.auditRetention);
    undo.push(() => services.heartbeats.flush());

    const app = await buildApp(services, { logger: loggerOptions(config.logLevel) });
    await app.register(healthPlugin, { services });
    if (database.migrated.length > 0) app.log.info({ migrations: database.migrated }, "database migrated");

    const admin = buildAdminServer(services, {
      logger: app.log,
      address: () => browserAddress(app),
      keys,
      snapshots: database.snapshots,
    });
    undo.push(() => admin.close());
    await admin.listen({ path: socket, listenTextResolver: () => "administration socket open" });
    chmodSync(socket, 0o600);

    undo.push(startChores(choresOf(services, keys, config), app.log));
    const servers = [app];
    undo.push(() => closeInTime(servers, config.shutdownTimeout));
    if (config.internal) {
      const { token } = config.internal;
      const loggerInstance = app.log.child({ listener: "internal" });
      const internal = await buildInternalApp(services, { loggerInstance, token });
      servers.push(internal);
      await listen(internal, config.internal, "--internal-host, --internal-port");
      internal.log.info({ address: httpAddress(internal) }, "listening for internal operations");
    }
    await listen(app, config, "--host, --port");
    app.log.info({ address: httpAddress(app), dataDir: config.dataDir }, "listening");
    return { log: app.log, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

const SECOND = 1000;
const HOUR = 3600 * SECOND;

function choresOf(services: Services, keys: DatabaseSigningKeys, config: Config): Chore[] {
  return [
    // So many seconds may pass until another instance's rotation of the signing key is known here.
    { name: "signing keys", every: 5 * SECOND, run: () => keys.refresh() },
    { name: "audit trail", every: HOUR, run: () => trimAuditTrail(services, config.auditRetention) },
  ];
}

async function listen(
  app: FastifyInstance,
  { host, port }: { readonly host: string; readonly port: number },
  flags: string,
): Promise<void> {
  try {
    await app.listen({ host, port, listenTextResolver: () => "service open" });
  } catch (error) {
    if (!(error instanceof Error) || !("syscall" in error)) throw error;
    throw new OperatorError(`Cannot listen on ${host} port ${port} (${flags}): ${error.message}`, {
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
  try {
    await Promise.all(servers.map((server) => server.close()));
  } finally {
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
