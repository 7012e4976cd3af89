import { execFile } from "node:child_process";
import { chmodSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { unknownText } from "@gatehouse-access/sdk/errors";
import type { FastifyBaseLogger, FastifyInstance } from "fastify";
import { pino } from "pino";
import { buildAdminServer } from "../admin/adminServer.ts";
import { prepareSocketPath, removeSocket } from "../admin/socketPath.ts";
import { buildApp } from "../app.ts";
import { DecisionTurns } from "../DecisionTurns.ts";
import { openDatabase } from "../db/openDatabase.ts";
import { tooManyDecisions } from "../errors.ts";
import { trimAuditTrail } from "../features/audit/audit.ts";
import { Heartbeats } from "../features/devices/heartbeats.ts";
import { StoredAgentKey } from "../features/privateKeys/privateKeys.ts";
import { FullRecordings } from "../features/sessions/FullRecordings.ts";
import { measureRecordings } from "../features/sessions/recordingQuotas.ts";
import { documentReader } from "../features/trustedWorkloads/issuerDocuments.ts";
import { IssuerKeys } from "../features/trustedWorkloads/issuerKeys.ts";
import { prepareDataFolder, refuseEmptiedDatabase } from "../files/dataFolder.ts";
import { Gateway } from "../gateway/Gateway.ts";
import { Enrollments } from "../http/limits/Enrollments.ts";
import { HttpServers } from "../http/listener/HttpServers.ts";
import { mailerOf } from "../mail/mailers.ts";
import { makeMetrics } from "../metrics.ts";
import { NamespacePatterns } from "../NamespacePatterns.ts";
import type { OperatorError } from "../OperatorError.ts";
import { openPaymentGateway } from "../payments/openPaymentGateway.ts";
import { type HostKey, knownHostKey } from "../secrets/hostKey.ts";
import { instanceSecret } from "../secrets/instanceSecret.ts";
import { sealerOf } from "../secrets/sealer.ts";
import { DatabaseSigningKeys } from "../secrets/signingKeys.ts";
import type { Services } from "../services.ts";
import type { Config, TlsFiles } from "../settings/readConfig.ts";
import { AccessClock } from "./accessClock.ts";
import { startChores } from "./chores.ts";
import { DiskSpace } from "./DiskSpace.ts";
import { healthPlugin } from "./health.ts";
import { listen, serveInternal, serveMetrics, serveSsh } from "./listeners.ts";
import { loggerOptions } from "./logging.ts";
import { Positions, UNKNOWN_POSITION } from "./positions.ts";
import { browserAddress, listeningAddress, warnOfPlainHttp } from "./serviceAddress.ts";
import { readTls } from "./tls.ts";

/** A service that accepts requests. */
export interface RunningService {
  readonly log: FastifyInstance["log"];
  /**
   * Logs the address of the service. Install signal handlers before this call, because a program that reads the log
   * line may send a signal immediately.
   */
  announce(): void;
  /**
   * Resolves when the service must stop because a newer version has migrated the database. The service then runs no
   * more chores, and stops without a lame-duck time. During a lame-duck time, a stopping service still accepts
   * requests.
   */
  readonly superseded: Promise<OperatorError>;
  /**
   * Stops the service. Reports that the service is not ready, serves requests and logins for the lame-duck time, and
   * drains open logins. Then completes requests in progress up to the configured time, and releases all resources.
   */
  stop(): Promise<void>;
  /**
   * Reloads the certificate, its key and the position file, if they are configured. If a file is invalid, the previous
   * data stays in use.
   */
  reload(): void;
}

/**
 * Starts the service in this order: data folder, database, signing key, servers. Opening the database prevents other
 * processes from using the data folder. If a step fails, the completed steps are undone.
 * @throws OperatorError the folder, the database, the key or the address cannot be used
 */
export async function serve(config: Config): Promise<RunningService> {
  const undo: (() => Promise<void> | void)[] = [];
  const stop = async () => {
    for (let step = undo.pop(); step; step = undo.pop()) {
      try {
        await step();
      } catch (error) {
        // Undo the remaining steps despite the error.
        await stop();
        throw error;
      }
    }
  };
  try {
    // Allow only the service's user to access the service's files, including files that SQLite and the socket create.
    process.umask(0o077);
    const { settings } = config;
    const { dataDir, geoipFile } = settings;
    const servers = new HttpServers(config.tls && readTls(config.tls));
    const positions =
      geoipFile === undefined
        ? undefined
        : new Positions(geoipFile, (error) => {
            app.log.warn({ err: error }, "cannot read the position of an address from the position file");
          });
    prepareDataFolder(dataDir);
    if ("file" in config.database) refuseEmptiedDatabase(dataDir, config.database.file);
    const database = await openDatabase(config.database, {
      anyway: settings.migrateAnyway,
      onWait: (instances) => {
        // Create a separate log, because the log of the app does not exist yet.
        const log = pino(loggerOptions(settings.logLevel));
        log.warn(
          { instances },
          "waiting for instances of an older version to end, before the database is migrated",
        );
      },
    });
    undo.push(() => database.close());
    const socket = await prepareSocketPath(dataDir);
    undo.push(() => removeSocket(dataDir));
    const now = () => new Date();
    const clock = new AccessClock({ db: database.client, now });
    await clock.measure();
    const base = {
      db: database.client,
      sealer: sealerOf(instanceSecret(dataDir, config.secret)),
      mailer: mailerOf(config.mail, dataDir, () => app.log),
      metrics: makeMetrics(),
      now,
      accessTime: clock.time,
      heartbeats: new Heartbeats(database.client, (error) => {
        app.log.error({ err: error }, "cannot write device reports; retrying later");
      }),
      enrollments: new Enrollments(),
      decisions: new DecisionTurns(tooManyDecisions),
      patterns: new NamespacePatterns(),
      fullRecordings: new FullRecordings(),
      issuerKeys: new IssuerKeys(
        documentReader({ networks: settings.workloadIssuerNetworks, proxy: settings.workloadIssuerProxy }),
        now,
        (issuer, error) => {
          app.log.warn({ err: error, issuer }, "cannot read the keys of an issuer of workloads' tokens");
        },
      ),
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
      schema: database.schema,
      log: () => app.log,
    });
    undo.push(() => services.heartbeats.flush());

    const app = await buildApp(services, gateway, { logger: loggerOptions(settings.logLevel), servers });
    let isStopping = false;
    await app.register(healthPlugin, {
      database,
      gateway: settings.sshPort === undefined ? undefined : gateway.process,
      isStopping: () => isStopping,
    });
    for (const unknown of config.unknownVariables) app.log.warn(unknown, unknownText(unknown));
    if (database.migrated.length > 0) app.log.info({ migrations: database.migrated }, "database migrated");
    if (database.namesUnindexed !== undefined)
      app.log.info({ reason: database.namesUnindexed }, "searches of devices by name use no index");

    let servedHostKey: HostKey | undefined;
    const admin = buildAdminServer(services, {
      logger: app.log,
      address: () => browserAddress(app, config),
      keys,
      snapshots: database.snapshots,
      external: config.external,
      hostKey: () => servedHostKey ?? knownHostKey(dataDir, settings.sshHostKeyFile),
    });
    await trimAuditTrail(services).catch((error: unknown) => {
      app.log.error({ err: error }, "cannot trim the audit trail; retrying in an hour");
    });
    // Measure before the first login, so that a namespace whose recordings are full refuses sessions from the start.
    await measureRecordings(services);
    await gateway.start();
    undo.push(() => gateway.stop());
    const diskSpace =
      "file" in config.database ? new DiskSpace(services, dirname(config.database.file), app.log) : undefined;
    const stopChores = startChores(services, { keys, clock, diskSpace }, app.log);
    undo.push(stopChores);
    const { superseded } = gateway.instances;
    let isSuperseded = false;
    superseded.then(() => {
      isSuperseded = true;
      // Stop the chores of this version, such as the deletion of old recordings, because they must not change data
      // after a newer version has migrated the schema.
      return stopChores();
    });
    const running = [app, admin];
    undo.push(() => closeInTime(running, settings.shutdownTimeout * 1000));
    await admin.listen({ path: socket, listenTextResolver: () => "administration socket open" });
    chmodSync(socket, 0o600);

    undo.push(() => gateway.endLogins(settings.drain * 1000));
    // Open the SSH port first. Otherwise, the first tunnel or terminal would start the gateway process without an SSH
    // port.
    if (settings.sshPort !== undefined) servedHostKey = await serveSsh(gateway, settings, settings.sshPort);
    if (settings.metricsAddress) running.push(await serveMetrics(services, settings.metricsAddress, app.log));
    if (config.internal) running.push(await serveInternal(gateway, config.internal, app.log));
    await listen(app, settings, { what: "service", flags: "--host, --port" });
    warnOfPlainHttp(app, config);
    const announce = () => {
      app.log.info({ address: listeningAddress(app, config), dataDir }, "listening");
      undo.push(async () => {
        isStopping = true;
        servers.endAfterResponses();
        if (settings.lameDuck === 0 || isSuperseded) return;
        app.log.info(
          { seconds: settings.lameDuck },
          "not ready; requests and logins are served for this time",
        );
        await Promise.race([wait(settings.lameDuck * 1000, undefined, { ref: false }), superseded]);
      });
      undo.push(reportToSystemd(app.log));
    };
    const { tls } = config;
    const reload = () => {
      if (tls) renewTls(app, servers, tls);
      if (positions) renewPositions(app, positions);
      if (!tls && !positions) app.log.info("no files to reload");
    };
    return { log: app.log, announce, superseded, stop, reload };
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
    log.error({ err: error }, "cannot reload the TLS certificate; the previous certificate stays in use");
  }
}

function renewPositions({ log }: FastifyInstance, positions: Positions): void {
  try {
    positions.reload();
    log.info("positions of addresses renewed");
  } catch (error) {
    log.error({ err: error }, "cannot reload the positions of addresses; the previous positions stay in use");
  }
}

/**
 * Stops all servers at the same time. If requests do not end within the time limit, their connections are closed.
 * @param milliseconds time limit for all servers together
 */
async function closeInTime(servers: readonly FastifyInstance[], milliseconds: number): Promise<void> {
  const timer = setTimeout(() => {
    servers[0]?.log.warn("requests did not end in time; closing their connections");
    for (const { server } of servers) server.closeAllConnections();
  }, milliseconds);
  try {
    await Promise.all(servers.map((server) => server.close()));
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Sends the notifications of the service to systemd. The first one reports that the service listens. Further ones
 * report that the event loop is responsive, as often as the unit's `WatchdogSec` requires. Has no effect outside a unit
 * of `Type=notify`.
 * @returns a function that notifies systemd that the service is stopping
 */
function reportToSystemd(log: FastifyBaseLogger, environment = process.env): () => void {
  const { NOTIFY_SOCKET, WATCHDOG_USEC } = environment;
  if (!NOTIFY_SOCKET) return () => {};
  let hasFailed = false;
  // systemd listens on a unix datagram socket. Node does not support such sockets, so the program `systemd-notify`
  // sends the messages.
  const notify = (...states: readonly string[]) => {
    execFile("systemd-notify", states, { env: environment }, (error) => {
      if (error === null || hasFailed) return;
      hasFailed = true;
      log.error({ err: error }, "systemd-notify has failed. Install it, or set Type=exec in the unit");
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
