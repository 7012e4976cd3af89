import { randomBytes } from "node:crypto";
import { createWriteStream, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type BackupManifest,
  BackupWriter,
  backupSize,
  readBackup,
} from "../../../server/files/backupFile.ts";
import { OperatorError } from "../../../server/OperatorError.ts";
import { testFolder } from "../../support/folder.ts";
import "../../support/properties.ts";

const manifest: BackupManifest = {
  version: "0.1.0",
  createdAt: "2026-01-31T00:00:00.000Z",
  secret: { fingerprint: "0123456789abcdef", source: "secret" },
  hostKey: { fingerprint: "SHA256:x", source: "key", sealed: "sealed" },
  external: ["GATEHOUSE_TLS_CERT_FILE"],
};

/** Writes a backup of the given bytes, in parts of the given size. Returns its path. */
async function backupOf(database: Buffer, part = 1000, facts = manifest): Promise<string> {
  const file = join(testFolder(), "backup");
  const parts = Array.from({ length: Math.ceil(database.length / part) }, (_, index) =>
    database.subarray(index * part, (index + 1) * part),
  );
  await pipeline(Readable.from(parts), new BackupWriter(facts), createWriteStream(file));
  return file;
}

/** Reads a backup. Returns its manifest and its database. */
async function contentOf(file: string) {
  let database = Buffer.alloc(0);
  const read = await readBackup(file, async (content) => {
    database = await buffer(content);
  });
  return { manifest: read, database };
}

test("returns the database and the manifest of a backup, in parts of any size", async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(200_000), fc.integer({ min: 500, max: 70_000 }), async (size, part) => {
      const database = randomBytes(size);
      const file = await backupOf(database, part);
      const content = await contentOf(file);
      expect(content.manifest).toEqual(manifest);
      expect(content.database.equals(database)).toBe(true);
      expect(readFileSync(file)).toHaveLength(backupSize(manifest, size));
    }),
    { numRuns: 20 },
  );
});

test("reports that a newer version wrote a backup whose manifest has another shape", async () => {
  const { secret: _secret, ...rest } = manifest;
  const file = await backupOf(randomBytes(3000), 1000, rest as BackupManifest);
  await expect(contentOf(file)).rejects.toThrow(
    new OperatorError(`A newer version of the service wrote ${file}. Use that version, or another backup.`),
  );
});

test("rejects a backup with any changed byte, a shorter backup, and a backup with an additional byte", async () => {
  const bytes = readFileSync(await backupOf(randomBytes(200)));
  const file = join(testFolder(), "changed");
  const refused = async (changed: Buffer, what: string) => {
    writeFileSync(file, changed);
    const error = await contentOf(file).catch((reason: unknown) => reason);
    expect(error, what).toBeInstanceOf(OperatorError);
    expect((error as Error).message, what).toMatch(/is damaged|is not a backup/);
  };
  for (const [position, byte] of bytes.entries()) {
    const changed = Buffer.from(bytes);
    changed[position] = byte ^ (1 << (position % 8));
    await refused(changed, `byte ${position}`);
    if (position % 10 === 0) await refused(bytes.subarray(0, position), `the first ${position} bytes`);
  }
  await refused(Buffer.concat([bytes, Buffer.from("\n")]), "an additional byte");
});

test("returns a database alone, as earlier versions wrote it, without a manifest", async () => {
  const file = join(testFolder(), "earlier.db");
  const database = Buffer.concat([Buffer.from("SQLite format 3\0"), randomBytes(100_000)]);
  writeFileSync(file, database);
  const content = await contentOf(file);
  expect(content.manifest).toBeUndefined();
  expect(content.database.equals(database)).toBe(true);
});

test("rejects a backup in the format of a newer version", async () => {
  const file = await backupOf(randomBytes(700));
  writeFileSync(
    file,
    readFileSync(file, "latin1").replace("gatehouse-backup 1", "gatehouse-backup 2"),
    "latin1",
  );
  await expect(contentOf(file)).rejects.toThrow("a newer version of the service wrote it");
});
