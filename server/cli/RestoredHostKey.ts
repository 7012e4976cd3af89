import { existsSync, renameSync, rmSync } from "node:fs";
import { basename } from "node:path";
import { fileFailureText } from "@gatehouse-access/sdk/errors";
import type { BackupManifest } from "../files/backupFile.ts";
import { moveDurably, writeDurably } from "../files/durableFile.ts";
import { OperatorError, reasonOf } from "../OperatorError.ts";
import {
  HOST_KEY_PURPOSE,
  type HostKey,
  hostKeyFile,
  knownHostKey,
  parseHostKey,
} from "../secrets/hostKey.ts";
import type { Sealer } from "../secrets/sealer.ts";
import { settings } from "../settings/settings.ts";

/** Messages for the operator. */
export interface RestoreMessages {
  readonly notes: readonly string[];
  readonly warnings: readonly string[];
}

interface Target {
  readonly dataDir: string;
  /**
   * Path of the key file from the settings. Undefined if the service uses the key in the data folder. The restore never
   * writes the configured file.
   */
  readonly configured: string | undefined;
  /** Time of the restore. It becomes part of the new name of an earlier key. */
  readonly time: string;
}

const CONSEQUENCE = "SSH clients that know the earlier key then report that the host key has changed";

/**
 * The SSH host key of a backup. A restore writes it to the data folder, and replaces any key in that folder. Such a key
 * may exist because the first start on a new host creates one. SSH clients do not recognize that key.
 */
export class RestoredHostKey {
  readonly #target: Target;
  readonly #hasManifest: boolean;
  readonly #key: HostKey | undefined;
  readonly #file: string;
  readonly #staged: string;

  /** @throws OperatorError the instance secret cannot decrypt the key in the backup */
  constructor(manifest: BackupManifest | undefined, sealer: Sealer, target: Target) {
    const sealed = manifest?.hostKey?.sealed;
    this.#target = target;
    this.#hasManifest = manifest !== undefined;
    this.#key =
      sealed === undefined
        ? undefined
        : parseHostKey(sealer.open(sealed, HOST_KEY_PURPOSE), "the SSH host key of the backup");
    this.#file = hostKeyFile(target.dataDir);
    this.#staged = `${this.#file}.restoring`;
  }

  /**
   * Writes the key to a temporary file, so that {@link install} only renames files.
   * @throws OperatorError the file cannot be written
   */
  stage(): void {
    if (this.#key === undefined) return;
    try {
      writeDurably(this.#staged, this.#key.pem);
    } catch (error) {
      throw new OperatorError(fileFailureText("write", this.#staged, error), { cause: error });
    }
  }

  /**
   * Installs the staged key, and keeps an earlier key under another name.
   * @param restored sentences about the completed steps of the restore; an error message begins with them
   * @throws OperatorError a file cannot be renamed. The data folder may then have no host key.
   */
  install(restored: string): RestoreMessages {
    if (this.#key === undefined) return this.#withoutKey();
    const { fingerprint } = this.#key;
    const { dataDir, configured } = this.#target;
    const notes: string[] = [];
    const earlier = fingerprintIn(dataDir);
    if (earlier !== fingerprint) {
      const kept = this.#replace(restored);
      if (kept !== undefined) notes.push(`The previous SSH host key (${earlier}) is in ${kept}.`);
    }
    notes.unshift(`Restored the SSH host key ${fingerprint} to ${this.#file}.`);
    const used = configured === undefined ? fingerprint : fingerprintIn(dataDir, configured);
    if (used === fingerprint) return { notes, warnings: [] };
    const { variable } = settings.sshHostKeyFile;
    return {
      notes,
      warnings: [
        `${variable} refers to ${configured} (${used}), not to the SSH host key of the backup (${fingerprint}). ` +
          `${CONSEQUENCE}. Unset ${variable}, or copy ${this.#file} to ${configured}.`,
      ],
    };
  }

  /**
   * Replaces the key in the data folder. Returns the new path of the earlier key. Returns undefined if no earlier key
   * existed.
   */
  #replace(restored: string): string | undefined {
    const file = this.#file;
    const kept = `${file}.before-restore-${this.#target.time}`;
    const existed = existsSync(file);
    try {
      // The rename leaves the folder without a key for a moment. A second hard link would avoid the gap, but some file
      // systems do not support hard links.
      if (existed) renameSync(file, kept);
      moveDurably(this.#staged, file);
    } catch (error) {
      const previous = existed && !existsSync(file) ? ` The previous key is in ${kept}.` : "";
      throw new OperatorError(
        `${restored}${previous} The SSH host key of the backup is not installed: ` +
          `${fileFailureText("write", file, error)} Remove the cause, and restore the backup again before the service ` +
          "starts. Otherwise SSH clients may report that the host key has changed.",
        { cause: error },
      );
    }
    return existed ? kept : undefined;
  }

  /** Removes the temporary file. */
  dispose(): void {
    rmSync(this.#staged, { force: true });
  }

  #withoutKey(): RestoreMessages {
    // A backup with a manifest but no host key comes from a service that has never served SSH.
    if (this.#hasManifest) return { notes: ["The backup contains no SSH host key."], warnings: [] };
    const { dataDir, configured } = this.#target;
    const file = hostKeyFile(dataDir, configured);
    const outcome = existsSync(file)
      ? `The service uses its present key ${file} (${fingerprintIn(dataDir, configured)})`
      : "The next start creates a new key";
    const remedy = `Copy the file ${basename(this.#file)} of the backed-up service to ${file} before the start.`;
    return {
      notes: [],
      warnings: [`The backup contains no SSH host key. ${outcome}. ${CONSEQUENCE}. ${remedy}`],
    };
  }
}

/** Returns the fingerprint of a host key. If no key can be read, returns the reason. */
function fingerprintIn(dataDir: string, configured?: string): string {
  try {
    return knownHostKey(dataDir, configured)?.fingerprint ?? "the file does not exist";
  } catch (error) {
    return reasonOf(error);
  }
}
