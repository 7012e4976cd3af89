import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { signUserToken, verifyToken } from "../../../server/http/access/tokens.ts";
import { instanceSecret } from "../../../server/secrets/instanceSecret.ts";
import { sealerOf } from "../../../server/secrets/sealer.ts";
import { setupSign } from "../../../server/secrets/setupSign.ts";
import { DatabaseSigningKeys } from "../../../server/secrets/signingKeys.ts";
import type { Services } from "../../../server/services.ts";
import { testFolder } from "../../support/folder.ts";
import { testDatabase } from "../db/database.ts";

const subject = { id: "a", origin: "local", username: "ana", mfa: false, tokenVersion: 0, tenant: "" };

/** Starts instances that share a database and a clock. The test advances the clock. */
async function instances() {
  const { client: db } = await testDatabase();
  let ahead = 0;
  const now = () => new Date(Date.now() + ahead);
  const start = async (secret = "the secret of the instances") => {
    const base = { db, now, sealer: sealerOf(secret) };
    return { ...base, keys: await DatabaseSigningKeys.load(base) } as Services & {
      keys: DatabaseSigningKeys;
    };
  };
  const pass = (seconds: number) => {
    ahead += seconds * 1000;
  };
  return { db, start, pass };
}

test("the first start creates an RSA key; later and concurrent starts use it", async () => {
  const { db, start } = await instances();
  const all = await Promise.all([start(), start(), start()]);
  expect(await db.signingKey.count()).toBe(1);
  const [first] = all;
  expect(first.keys.privateKey.asymmetricKeyDetails?.modulusLength).toBeGreaterThanOrEqual(2048);
  for (const other of all) {
    expect(other.keys.kid).toBe(first.keys.kid);
    expect(other.keys.privateKey.equals(first.keys.privateKey)).toBe(true);
    expect(setupSign(other.keys)).toBe(setupSign(first.keys));
  }
});

test("the private key is sealed: no instance starts without the secret", async () => {
  const { db, start } = await instances();
  await start();
  const [row] = await db.signingKey.findMany();
  expect(Buffer.from(row?.sealed ?? "", "base64url").toString("latin1")).not.toContain("PRIVATE");
  await expect(start("another secret")).rejects.toThrow("Set GATEHOUSE_SECRET_FILE");
});

test("after a rotation the new key signs, and tokens of the old key remain valid until their expiry", async () => {
  const { start, pass } = await instances();
  const [one, other] = [await start(), await start()];
  const old = await signUserToken(one, subject);
  const kid = await one.keys.rotate({ revoke: false });
  expect(one.keys.kid).toBe(kid);
  const fresh = await signUserToken(one, subject);
  for (const token of [old, fresh]) expect(await verifyToken(one, token)).toMatchObject({ id: "a" });
  // The other instance loads the new signing key when it next reads the keys from the database.
  await other.keys.refresh();
  expect(other.keys.kid).toBe(kid);
  expect(await verifyToken(other, fresh)).toMatchObject({ id: "a" });
  pass(72 * 3600 + 1);
  await one.keys.refresh();
  expect(await one.keys.find(JSON.parse(atob(old.split(".")[0] ?? "")).kid)).toBeUndefined();
});

test("accepts tokens of a key that another instance has just created", async () => {
  const { start } = await instances();
  const [one, other] = [await start(), await start()];
  await one.keys.rotate({ revoke: false });
  const tokens = await Promise.all([1, 2, 3].map(() => signUserToken(one, subject)));
  // The other instance has read its keys before the rotation. Each token with an unknown key makes it read the keys
  // again.
  const verified = await Promise.all(tokens.map((token) => verifyToken(other, token)));
  expect(verified).toEqual(Array(3).fill(expect.objectContaining({ id: "a" })));
});

test("the revocation of the signing keys invalidates every token immediately", async () => {
  const { start } = await instances();
  const [one, other] = [await start(), await start()];
  const token = await signUserToken(one, subject);
  await one.keys.rotate({ revoke: true });
  expect(await verifyToken(one, token)).toBeUndefined();
  await other.keys.refresh();
  expect(await verifyToken(other, token)).toBeUndefined();
});

test("creates the instance's secret once, readable only by its user", () => {
  const folder = testFolder();
  const secret = instanceSecret(folder, undefined);
  expect(secret.length).toBeGreaterThanOrEqual(32);
  expect(instanceSecret(folder, undefined)).toBe(secret);
  expect(readdirSync(folder)).toEqual(["secret"]);
  expect(statSync(join(folder, "secret")).mode & 0o777).toBe(0o600);
  expect(instanceSecret(folder, "configured")).toBe("configured");
});

test("rejects a secret that other users can read, and an empty secret", () => {
  const folder = testFolder();
  const file = join(folder, "secret");
  writeFileSync(file, "x".repeat(40), { mode: 0o640 });
  chmodSync(file, 0o640);
  expect(() => instanceSecret(folder, undefined)).toThrow(`chmod 600 ${file}`);
  chmodSync(file, 0o600);
  expect(instanceSecret(folder, undefined)).toBe(readFileSync(file, "utf8"));
  writeFileSync(file, "");
  expect(() => instanceSecret(folder, undefined)).toThrow("is empty");
});

test("opens a sealed text only for its purpose, and not after a change", () => {
  const sealer = sealerOf("secret");
  const sealed = sealer.seal("text", "purpose");
  expect(sealer.open(sealed, "purpose")).toBe("text");
  expect(sealer.seal("text", "purpose")).not.toBe(sealed);
  for (const [changed, purpose] of [
    [sealed, "another purpose"],
    [`${sealed.startsWith("A") ? "B" : "A"}${sealed.slice(1)}`, "purpose"],
    ["", "purpose"],
  ] as const) {
    expect(() => sealer.open(changed, purpose)).toThrow("a different instance secret");
  }
});

/** A thread that reads the secret of each folder at the same moment as the other threads. */
const RACER = `
const { parentPort, workerData } = require("node:worker_threads");
const { module, folders, threads, counters } = workerData;
import(module).then(({ instanceSecret }) => {
  const arrived = new Int32Array(counters);
  parentPort.postMessage(folders.map((folder, round) => {
    Atomics.add(arrived, round, 1);
    while (Atomics.load(arrived, round) < threads);
    return instanceSecret(folder, undefined);
  }));
});`;

test("instances that start together on a new folder have one secret", async () => {
  const threads = 2;
  const folders = Array.from({ length: 50 }, () => testFolder());
  const module = import.meta.resolve("../../../server/secrets/instanceSecret.ts");
  const counters = new SharedArrayBuffer(folders.length * Int32Array.BYTES_PER_ELEMENT);
  const race = () =>
    new Promise<string[]>((resolve, reject) => {
      const worker = new Worker(RACER, { eval: true, workerData: { module, folders, threads, counters } });
      worker.once("message", resolve).once("error", reject);
    });
  const [first, second] = await Promise.all([race(), race()]);
  expect(second).toEqual(first);
  expect(folders.map((folder) => instanceSecret(folder, undefined))).toEqual(first);
  expect(folders.flatMap((folder) => readdirSync(folder))).toEqual(folders.map(() => "secret"));
});
