import { chmodSync } from "node:fs";
import type { FastifyInstance } from "fastify";
import { buildAdminServer } from "../admin/adminServer.ts";
import { prepareSocketPath, removeSocket } from "../admin/socketPath.ts";
import { buildApp } from "../app.ts";
import { openDatabase } from "../db/openDatabase.ts";
import { trimAuditTrail } from "../features/audit/retention.ts";
import { forgetRemovedDevices, refreshBilling } from "../features/billing/upkeep.ts";
import { Enrolments } from "../features/devices/Enrolments.ts";
import { Heartbeats } from "../features/devices/heartbeats.ts";
import { deliverMails } from "../features/outbox/deliverMails.ts";
import { trimSessions } from "../features/sessions/retention.ts";
import { removeEndedTunnels } from "../features/tunnels/expiry.ts";
import { forgetAccounts } from "../features/users/forgetAccounts.ts";
import { prepareDataFolder, refuseEmptiedDatabase } from "../files/dataFolder.ts";
import { HttpServers } from "../http/HttpServers.ts";
import { mailerOf } from "../mail/mailerOf.ts";
import { openGateway } from "../payments/openGateway.ts";
import { instanceSecret } from "../secrets/instanceSecret.ts";
import { sealerOf } from "../secrets/sealer.ts";
import { DatabaseSigningKeys } from "../secrets/signingKeys.ts";
import type { Services } from "../services.ts";
import type { Config } from "../settings/readConfig.ts";
import { type Chore, startChores } from "./chores.ts";
import { closeInTime } from "./closeInTime.ts";
import { healthPlugin } from "./health.ts";
import { listen, serveInternal, serveMetrics } from "./listeners.ts";
import { loggerOptions } from "./logging.ts";
import { makeMetrics } from "./metrics.ts";
import { Positions, UNKNOWN_POSITION } from "./positions.ts";
import { browserAddress, listeningAddress, warnOfPlainHttp } from "./serviceAddress.ts";
import { readTls, type TlsFiles } from "./tls.ts";

/** A service that accepts requests. */
export interface RunningService {
  readonly log: FastifyInstance["log"];
  /** Says in the log where it listens. Signals must be handled by then: who reads the line may send one. */
  announce(): void;
  /** Lets requests in flight end, within the configured time, and gives back everything that it holds. */
  stop(): Promise<void>;
  /** Reads certificate, key and positions again; with wrong ones it goes on with the old. Only where it has any. */
  reload?(): void;
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
    const servers = new HttpServers(config.tls && readTls(config.tls));
    const positions =
      config.geoipFile === undefined
        ? undefined
        : new Positions(config.geoipFile, (error) => {
            app.log.warn({ err: error }, "the position of an address could not be read from its file");
          });
    prepareDataFolder(config.dataDir);
    if ("file" in config.database) refuseEmptiedDatabase(config.dataDir, config.database.file);
    const database = await openDatabase(config.database);
    undo.push(() => database.close());
    const socket = await prepareSocketPath(config.dataDir);
    undo.push(() => removeSocket(config.dataDir));
    const base = {
      db: database.client,
      sealer: sealerOf(instanceSecret(config.dataDir, config.secret)),
      mailer: mailerOf(config.mail, config.dataDir, () => app.log),
      metrics: makeMetrics(),
      now: () => new Date(),
      heartbeats: new Heartbeats(database.client, (error) => {
        app.log.error({ err: error }, "reports of devices could not be written, and will be later");
      }),
      enrolments: new Enrolments(),
      positionOf: (address: string) => positions?.of(address) ?? UNKNOWN_POSITION,
    };
    const billing = openGateway({ ...base, settings: config.service });
    const keys = await DatabaseSigningKeys.load(base);
    const services: Services = { ...base, keys, billing, settings: config.service };
    await trimAuditTrail(services, config.auditRetention);
    undo.push(() => services.heartbeats.flush());

    const app = await buildApp(services, { logger: loggerOptions(config.logLevel), servers });
    await app.register(healthPlugin, { database });
    if (database.migrated.length > 0) app.log.info({ migrations: database.migrated }, "database migrated");

    const admin = buildAdminServer(services, {
      logger: app.log,
      address: () => browserAddress(app, config),
      keys,
      snapshots: database.snapshots,
    });
    undo.push(startChores(choresOf(services, keys, config, app.log), app.log));
    const running = [app, admin];
    undo.push(() => closeInTime(running, config.shutdownTimeout));
    await admin.listen({ path: socket, listenTextResolver: () => "administration socket open" });
    chmodSync(socket, 0o600);

    if (config.metrics) running.push(await serveMetrics(services.metrics, config.metrics, app.log));
    if (config.internal) running.push(await serveInternal(services, config.internal, app.log));
    await listen(app, config, { what: "service", flags: "--host, --port" });
    warnOfPlainHttp(app, config);
    const announce = () =>
      app.log.info({ address: listeningAddress(app, config), dataDir: config.dataDir }, "listening");
    const { tls } = config;
    const reload = () => {
      if (tls) renewTls(app, servers, tls);
      if (positions) renewPositions(app, positions);
    };
    return { log: app.log, announce, stop, ...((tls || positions) && { reload }) };
  } catch (error) {
    await stop();
    throw error;
  }
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

function choresOf(
  services: Services,
  keys: DatabaseSigningKeys,
  config: Config,
  log: FastifyInstance["log"],
): Chore[] {
  return [
    // So many seconds may pass until another instance's rotation of the signing key is known here.
    { name: "signing keys", every: 5 * SECOND, run: () => keys.refresh() },
    { name: "billing", every: 10 * MINUTE, run: () => refreshBilling(services) },
    { name: "removed devices", every: HOUR, run: () => forgetRemovedDevices(services) },
    { name: "audit trail", every: HOUR, run: () => trimAuditTrail(services, config.auditRetention) },
    { name: "mails", every: 2 * SECOND, run: () => deliverMails(services, log) },
    { name: "accounts", every: HOUR, run: () => forgetAccounts(services) },
    { name: "sessions", every: 10 * MINUTE, run: () => trimSessions(services, config.sessionRetention) },
    { name: "tunnels", every: HOUR, run: () => removeEndedTunnels(services) },
  ];
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
