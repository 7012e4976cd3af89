import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { pipeline, type Readable, Transform, type TransformCallback } from "node:stream";
import { fileFailureText } from "@gatehouse-access/sdk/errors";
import { z } from "zod";
import { OperatorError } from "../OperatorError.ts";

/**
 * The manifest of a backup. It describes the parts of a service that a restore needs in addition to the database. It
 * contains the SSH host key, and names the secrets and files that the backup does not contain. The keys that the
 * service uses to authenticate to agents are part of the database.
 */
const backupManifest = z.object({
  /** Version of the service that wrote the backup. */
  version: z.string(),
  createdAt: z.iso.datetime(),
  /**
   * Fingerprint and source of the instance secret. The backup does not contain the secret itself. `source` is the path
   * of the secret, or the name of its setting.
   */
  secret: z.object({ fingerprint: z.string(), source: z.string() }),
  /** The SSH host key, sealed with the instance secret. Null if the service had no host key. */
  hostKey: z.object({ fingerprint: z.string(), source: z.string(), sealed: z.string() }).nullable(),
  /** Names of the settings that refer to secrets and files that the backup does not contain. */
  external: z.array(z.string()),
});

export type BackupManifest = z.output<typeof backupManifest>;

/** The parts of a service that a backup does not contain. The manifest names them. */
export interface ExternalParts {
  /** The path of the instance secret, or the name of the setting that contains it. */
  readonly secret: string;
  /** Names of the configured settings that refer to other secrets and to files. */
  readonly settings: readonly string[];
}

/**
 * First line of a backup. The second line is the manifest as JSON, followed by the bytes of the SQLite database. The
 * last line is the SHA-256 of all bytes before it. The backup is a single file, so that copying it cannot lose a part.
 * The first two lines are readable without the service.
 */
const FIRST_LINE = "gatehouse-backup 1\n";
/** First characters of backups in all formats. */
const MAGIC = "gatehouse-backup ";
/** First bytes of a SQLite database. Earlier versions wrote only the database, without a manifest or a checksum. */
const SQLITE_MAGIC = "SQLite format 3\0";
/** Length of the last line, in bytes. */
const LAST_LINE = 65;
/** Maximum length of the first two lines, in bytes. */
const HEAD_MAX = 64 * 1024;

const headOf = (manifest: BackupManifest): Buffer =>
  Buffer.from(`${FIRST_LINE}${JSON.stringify(manifest)}\n`);

/** Returns the size of a backup, in bytes. */
export const backupSize = (manifest: BackupManifest, databaseSize: number): number =>
  headOf(manifest).length + databaseSize + LAST_LINE;

/** Converts the bytes of a SQLite database into the bytes of a backup. */
export class BackupWriter extends Transform {
  readonly #hash = createHash("sha256");

  constructor(manifest: BackupManifest) {
    super();
    this.#write(headOf(manifest));
  }

  #write(data: Buffer): void {
    this.#hash.update(data);
    this.push(data);
  }

  override _transform(data: Buffer, _encoding: string, done: TransformCallback): void {
    this.#write(data);
    done();
  }

  override _flush(done: TransformCallback): void {
    this.push(`${this.#hash.digest("hex")}\n`);
    done();
  }
}

/**
 * Converts the bytes of a backup into the bytes of its SQLite database. The stream fails with an {@link OperatorError}
 * if the input is not a backup or is damaged.
 */
class BackupReader extends Transform {
  readonly #name: string;
  readonly #hash = createHash("sha256");
  #part: "head" | "database" | "databaseAlone" = "head";
  #held: Buffer = Buffer.alloc(0);
  #manifestText = "";
  #manifest: BackupManifest | undefined;

  /** @param name name of the backup in messages */
  constructor(name: string) {
    super();
    this.#name = name;
  }

  /**
   * The manifest of the backup, available after the stream has ended. Undefined if an earlier version wrote the backup.
   * Such a backup has no checksum either.
   */
  get manifest(): BackupManifest | undefined {
    return this.#manifest;
  }

  override _transform(data: Buffer, _encoding: string, done: TransformCallback): void {
    try {
      if (this.#part === "databaseAlone") this.push(data);
      else if (this.#part === "database") this.#passOn(data);
      else this.#readHead(data);
      done();
    } catch (error) {
      done(error as Error);
    }
  }

  override _flush(done: TransformCallback): void {
    try {
      if (this.#part === "head") throw this.#headError();
      if (this.#part === "database") this.#check();
      done();
    } catch (error) {
      done(error as Error);
    }
  }

  #readHead(data: Buffer): void {
    this.#held = Buffer.concat([this.#held, data]);
    if (this.#held.length < SQLITE_MAGIC.length) return;
    if (this.#held.toString("latin1", 0, SQLITE_MAGIC.length) === SQLITE_MAGIC) {
      this.#part = "databaseAlone";
      this.push(this.#held);
      return;
    }
    const end = this.#held.indexOf("\n", FIRST_LINE.length);
    if (this.#held.length >= FIRST_LINE.length && !this.#held.toString("latin1").startsWith(FIRST_LINE)) {
      throw this.#headError();
    }
    if (end === -1 && this.#held.length < HEAD_MAX) return;
    if (end === -1 || end >= HEAD_MAX) throw this.#damage();
    const head = this.#held.subarray(0, end + 1);
    const rest = this.#held.subarray(end + 1);
    this.#hash.update(head);
    this.#manifestText = head.toString("utf8", FIRST_LINE.length);
    this.#held = Buffer.alloc(0);
    this.#part = "database";
    this.#passOn(rest);
  }

  /**
   * Passes on the data of the database. Holds back the last bytes, because they may be the last line of the backup.
   */
  #passOn(data: Buffer): void {
    const all = Buffer.concat([this.#held, data]);
    const end = Math.max(0, all.length - LAST_LINE);
    const database = all.subarray(0, end);
    this.#held = all.subarray(end);
    this.#hash.update(database);
    this.push(database);
  }

  #check(): void {
    if (this.#held.toString("latin1") !== `${this.#hash.digest("hex")}\n`) throw this.#damage();
    const manifest = backupManifest.safeParse(JSON.parse(this.#manifestText));
    if (!manifest.success) {
      throw new OperatorError(
        `A newer version of the service wrote ${this.#name}. Use that version, or another backup.`,
      );
    }
    this.#manifest = manifest.data;
  }

  #damage(): OperatorError {
    return new OperatorError(
      `${this.#name} is damaged: its content does not match its checksum. Use another backup.`,
    );
  }

  #headError(): OperatorError {
    const text = this.#held.toString("latin1");
    if (!text.startsWith(MAGIC)) {
      return new OperatorError(
        `${this.#name} is not a backup. Use a file that \`gatehouse-server backup\` wrote.`,
      );
    }
    if (FIRST_LINE.startsWith(text.slice(0, FIRST_LINE.length))) return this.#damage();
    return new OperatorError(
      `${this.#name} is damaged, or a newer version of the service wrote it. Use that version, or another backup.`,
    );
  }
}

/**
 * Reads a backup and verifies its checksum.
 * @param consume reads the bytes of the SQLite database. The bytes are verified only when `readBackup` resolves.
 * @returns the manifest; undefined if an earlier version wrote the backup. Such a backup has no checksum.
 * @throws OperatorError the file cannot be read, is not a backup, is damaged, or was written by a newer version
 */
export async function readBackup(
  file: string,
  consume: (database: Readable) => Promise<void>,
): Promise<BackupManifest | undefined> {
  const reader = new BackupReader(file);
  // The errors of both streams reach the consumer.
  pipeline(createReadStream(file), reader, () => {});
  try {
    await consume(reader);
  } catch (error) {
    const { path, syscall } = error as NodeJS.ErrnoException;
    if (path !== file && syscall !== "read") throw error;
    throw new OperatorError(fileFailureText("read", file, error), { cause: error });
  }
  return reader.manifest;
}
