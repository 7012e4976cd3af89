import { pipeline } from "node:stream";
import type { FastifyInstance } from "fastify";
import type { Snapshots } from "../db/sqlite/snapshots.ts";
import { InvalidError } from "../errors.ts";
import { type BackupManifest, BackupWriter, backupSize, type ExternalParts } from "../files/backupFile.ts";
import { packageVersion } from "../files/packageFile.ts";
import { HOST_KEY_PURPOSE, type HostKey, hostKeyFile } from "../secrets/hostKey.ts";
import { secretFingerprint } from "../secrets/instanceSecret.ts";
import type { Services } from "../services.ts";
import { CHANGES_HEADER, type DatabaseChanges } from "./requests.ts";

/**
 * Version of the running service. It is read at the start, because an update of the installed package changes the
 * version in the package's files.
 */
const VERSION = packageVersion();

interface SnapshotOptions {
  readonly snapshots: Snapshots | undefined;
  readonly external: ExternalParts;
  /** Returns the SSH host key of the service; undefined if it has none. */
  readonly hostKey: () => HostKey | undefined;
}

/** Adds two routes: one sends a backup, and one sends a copy of the database for the move to PostgreSQL. */
export function registerSnapshots(
  app: FastifyInstance,
  { sealer, now, settings }: Services,
  { snapshots, external, hostKey }: SnapshotOptions,
): void {
  const keyFile = hostKeyFile(settings.dataDir, settings.sshHostKeyFile);
  const needed = (): Snapshots => {
    if (snapshots) return snapshots;
    throw new InvalidError(
      "The service keeps its data in PostgreSQL. Copy it with PostgreSQL's programs: " +
        "`pg_dump --format=custom --file=<file> <database>` and `pg_restore`. Also copy the instance secret " +
        `(${external.secret}) and the SSH host key (${keyFile})`,
    );
  };
  const manifest = (): BackupManifest => {
    const key = hostKey();
    return {
      version: VERSION,
      createdAt: now().toISOString(),
      secret: { fingerprint: secretFingerprint(sealer), source: external.secret },
      hostKey: key
        ? { fingerprint: key.fingerprint, source: keyFile, sealed: sealer.seal(key.pem, HOST_KEY_PURPOSE) }
        : null,
      external: [...external.settings],
    };
  };

  app.get("/backup", async (request, reply) => {
    const source = needed();
    const facts = manifest();
    const { file, size } = await source.take();
    request.log.info({ bytes: size }, "database copied by an administrator");
    const backup = pipeline(file.createReadStream(), new BackupWriter(facts), (error) => {
      if (error) request.log.warn({ err: error }, "a backup was not completely sent");
    });
    return reply
      .header("content-type", "application/octet-stream")
      .header("content-length", backupSize(facts, size))
      .send(backup);
  });

  app.get("/database", async (request, reply) => {
    const { file, size, changes } = await needed().take();
    request.log.info({ bytes: size }, "database copied by an administrator");
    return reply
      .header("content-type", "application/vnd.sqlite3")
      .header("content-length", size)
      .header(CHANGES_HEADER, changes)
      .send(file.createReadStream());
  });

  app.get("/database/changes", async (): Promise<DatabaseChanges> => ({ changes: await needed().changes() }));
}
