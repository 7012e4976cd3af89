import { execFile } from "node:child_process";
import { chmodSync } from "node:fs";
import type { FastifyBaseLogger, FastifyInstance } from "fastify";
import { buildAdminServer } from "../admin/adminServer.ts";
import { prepareSocketPath, removeSocket } from "../admin/socketPath.ts";
import { buildApp } from "../app.ts";
import { openDatabase } from "../db/openDatabase.ts";
import { trimAuditTrail } from "../features/audit/handlers.ts";
import { Heartbeats } from "../features/devices/heartbeats.ts";
import { StoredAgentKey } from "../features/privateKeys/privateKeys.ts";
import { prepareDataFolder, refuseEmptiedDatabase } from "../files/dataFolder.ts";
import { Gateway } from "../gateway/Gateway.ts";
import { Enrollments } from "../http/limits/Enrollments.ts";
import { HttpServers } from "../http/listener/HttpServers.ts";
import { mailerOf } from "../mail/mailers.ts";
import { makeMetrics } from "../metrics.ts";
import { openPaymentGateway } from "../payments/openPaymentGateway.ts";
import { instanceSecret } from "../secrets/instanceSecret.ts";
import { sealerOf } from "../secrets/sealer.ts";
import { DatabaseSigningKeys } from "../secrets/signingKeys.ts";
import type { Services } from "../services.ts";
import type { Config, TlsFiles } from "../settings/readConfig.ts";
import { startChores } from "./chores.ts";
import { healthPlugin } from "./health.ts";
import { listen, serveInternal, serveMetrics, serveSsh } from "./listeners.ts";
import { loggerOptions } from "./logging.ts";
import { Positions, UNKNOWN_POSITION } from "./positions.ts";
import { browserAddress, listeningAddress, warnOfPlainHttp } from "./serviceAddress.ts";
import { readTls } from "./tls.ts";

/** A service that accepts requests. */
export interface RunningService {
  readonly log: FastifyInstance["log"];
  /** Logs the address of the service. Signals must be handled before: a reader of that line may send one. */
  announce(): void;
  /** Lets requests in flight end, within the configured time, and releases all resources. */
  stop(): Promise<void>;
  /** Reloads certificate, key and positions, where files of these are set; invalid files leave the old ones in use. */
  reload(): void;
}

/**
 * Starts the service: data folder, database (which makes this process the folder's owner), signing key, then the
 * servers. If a step fails, the earlier ones are undone.
 * @throws OperatorError saying what is wrong with the folder, the database, the key or the address
 */
export async function serve(config: Config): Promise<RunningService> {
  const undo: (() => Promise<void> | void)[] = [];
  const stop = async () => {
    for (let step = undo.pop(); step; step = undo.pop()) {
      try {
        await step();
      } catch (error) {
        // The remaining steps are undone all the same.
        await stop();
        throw error;
      }
    }
  };
  try {
    // Files of the service are for its user alone, also those that SQLite and the socket create.
    process.umask(0o077);
    const { settings } = config;
    const { dataDir, geoipFile } = settings;
    const servers = new HttpServers(config.tls && readTls(config.tls));
    const positions =
      geoipFile === undefined
        ? undefined
        : new Positions(geoipFile, (error) => {
            app.log.warn({ err: error }, "the position of an address could not be read from its file");
          });
    prepareDataFolder(dataDir);
    if ("file" in config.database) refuseEmptiedDatabase(dataDir, config.database.file);
    const database = await openDatabase(config.database);
    undo.push(() => database.close());
    const socket = await prepareSocketPath(dataDir);
    undo.push(() => removeSocket(dataDir));
    const base = {
      db: database.client,
      sealer: sealerOf(instanceSecret(dataDir, config.secret)),
      mailer: mailerOf(config.mail, dataDir, () => app.log),
      metrics: makeMetrics(),
      now: () => new Date(),
      heartbeats: new Heartbeats(database.client, (error) => {
        app.log.error({ err: error }, "reports of devices could not be written, and will be later");
      }),
      enrollments: new Enrollments(),
      positionOf: (address: string) => positions?.of(address) ?? UNKNOWN_POSITION,
    };
    const billing = openPaymentGateway({ ...base, settings });
    const keys = await DatabaseSigningKeys.load(base);
    const peers = config.internal?.peerUrl && { url: config.internal.peerUrl, token: config.internal.token };
    const agentKey = new StoredAgentKey({ ...base, settings });
    const services: Services = { ...base, keys, billing, agentKey, settings };
    const gateway = new Gateway(services, {
      folder: dataDir,
      peers: peers || undefined,
      log: () => app.log,
    });
    undo.push(() => services.heartbeats.flush());

    const app = await buildApp(services, gateway, { logger: loggerOptions(settings.logLevel), servers });
    await app.register(healthPlugin, { database });
    if (database.migrated.length > 0) app.log.info({ migrations: database.migrated }, "database migrated");
    if (database.namesUnindexed !== undefined)
      app.log.info({ reason: database.namesUnindexed }, "devices are searched by name without an index");

    const admin = buildAdminServer(services, {
      logger: app.log,
      address: () => browserAddress(app, config),
      keys,
      snapshots: database.snapshots,
    });
    await trimAuditTrail(services).catch((error: unknown) => {
      app.log.error(
        { err: error },
        "the audit trail could not be trimmed; the next attempt follows in an hour",
      );
    });
    await gateway.start();
    undo.push(() => gateway.stop());
    undo.push(startChores(services, keys, app.log));
    const running = [app, admin];
    undo.push(() => closeInTime(running, settings.shutdownTimeout * 1000));
    await admin.listen({ path: socket, listenTextResolver: () => "administration socket open" });
    chmodSync(socket, 0o600);

    if (settings.metricsAddress) running.push(await serveMetrics(services, settings.metricsAddress, app.log));
    if (config.internal) running.push(await serveInternal(gateway, config.internal, app.log));
    await listen(app, settings, { what: "service", flags: "--host, --port" });
    undo.push(() => gateway.endLogins(settings.drain * 1000));
    if (settings.sshPort !== undefined) await serveSsh(gateway, settings, settings.sshPort);
    warnOfPlainHttp(app, config);
    const announce = () => {
      app.log.info({ address: listeningAddress(app, config), dataDir }, "listening");
      undo.push(reportToSystemd(app.log));
    };
    const { tls } = config;
    const reload = () => {
      if (tls) renewTls(app, servers, tls);
      if (positions) renewPositions(app, positions);
      if (!tls && !positions) app.log.info("there are no files to read again");
    };
    return { log: app.log, announce, stop, reload };
  } catch (error) {
    await stop();
    throw error;
  }
}

function renewTls({ log }: FastifyInstance, servers: HttpServers, files: TlsFiles): void {
  try {
    servers.renewTls(readTls(files));
    log.info("TLS certificate renewed");
  } catch (error) {
    log.error({ err: error }, "the TLS certificate stays the old one");
  }
}

function renewPositions({ log }: FastifyInstance, positions: Positions): void {
  try {
    positions.reload();
    log.info("positions of addresses renewed");
  } catch (error) {
    log.error({ err: error }, "the positions of addresses stay the old ones");
  }
}

/**
 * Closes all servers at once. Requests that have not ended in time are cut off.
 * @param milliseconds time for all of them together
 */
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

/**
 * Reports to systemd that the service listens and, as often as its unit's `WatchdogSec` asks for, that its event loop
 * turns. Without a unit of `Type=notify` it does nothing.
 * @returns a function that reports the end
 */
function reportToSystemd(log: FastifyBaseLogger, environment = process.env): () => void {
  const { NOTIFY_SOCKET, WATCHDOG_USEC } = environment;
  if (!NOTIFY_SOCKET) return () => {};
  let hasFailed = false;
  // Node has no datagram sockets of the kind that systemd listens on.
  const notify = (...states: readonly string[]) => {
    execFile("systemd-notify", states, { env: environment }, (error) => {
      if (error === null || hasFailed) return;
      hasFailed = true;
      log.error({ err: error }, "systemd-notify has failed: the unit needs it, or Type=exec");
    });
  };
  notify("--ready");
  const interval = Number(WATCHDOG_USEC) / 1000 / 3;
  const timer = interval > 0 ? setInterval(() => notify("WATCHDOG=1"), interval).unref() : undefined;
  return () => {
    clearInterval(timer);
    notify("STOPPING=1");
  };
}
