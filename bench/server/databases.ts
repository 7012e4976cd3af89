import { join } from "node:path";
import type { Database } from "../../server/dist/db/Database.js";
import { openDatabase } from "../../server/dist/db/openDatabase.js";
import { sqliteTime } from "../../server/dist/db/sqlite/adapter.js";
import { hashPassword } from "../../server/dist/secrets/passwords.js";
import { startPostgresql } from "../../test/support/postgresql/server.ts";
import {
  contentsOf,
  GIVEN_ROLES,
  keyOf,
  type NamespaceName,
  OTHER_USERS,
  PASSWORD,
  RARE_TAG,
  reportOf,
  ruleIdOf,
  tenantOf,
  USERNAMES,
  uidOf,
  userOf,
} from "./namespaces.ts";

export type DatabaseName = "sqlite" | "postgresql";

/**
 * Starts a database for one run.
 * @param folder folder of the run
 * @param given URL of an empty PostgreSQL database; if undefined, a PostgreSQL server is started
 * @returns the URL for the service, and the URL for the baseline server. With SQLite the URLs differ, since only one
 * process can own a SQLite file.
 */
export async function startDatabase(name: DatabaseName, folder: string, given?: string) {
  if (name === "sqlite") {
    const fileUrl = (file: string) => `file:${join(folder, file)}`;
    return { url: fileUrl("gatehouse.db"), floorUrl: fileUrl("floor.db"), stop: async () => {} };
  }
  // With `fsync` on, which is PostgreSQL's default, acknowledged transactions are on the disk.
  const server = given === undefined ? await startPostgresql({ fsync: "on" }) : undefined;
  const url = given ?? server?.url ?? "";
  return { url, floorUrl: url, stop: async () => server?.stop() };
}

/** Opens the database at a URL with the service's own module, and with the service's default number of connections. */
export function openForBench(url: string): Promise<Database> {
  return openDatabase(
    url.startsWith("file:") ? { file: url.slice("file:".length) } : { url, connections: 10 },
  );
}

/** Number of rows that one INSERT statement adds. */
const BATCH = 5000;

type Row = Readonly<Record<string, string | number | boolean | null>>;

/**
 * Inserts rows into a table. Uses SQL statements, since they insert 100,000 rows within seconds.
 * @param row returns the row with a number; each row has the same columns
 * @param batch number of rows that one statement adds; smaller for rows of many kilobytes
 */
export type Insert = (
  table: string,
  count: number,
  row: (index: number) => Row,
  batch?: number,
) => Promise<void>;

/**
 * Opens the database at a URL for fast inserts, and closes it after the work.
 * @param work adds rows to the database
 */
export async function fill(url: string, work: (insert: Insert) => Promise<void>): Promise<void> {
  const { client, close } = await openForBench(url);
  const isSqlite = url.startsWith("file:");
  await work(async (table, count, row, batch = BATCH) => {
    if (count === 0) return;
    const columns = Object.keys(row(0));
    const names = columns.map((name) => `"${name}"`).join(", ");
    const values = columns.map((name) => `value ->> '${name}'`).join(", ");
    const from = isSqlite
      ? `SELECT ${values} FROM json_each(?)`
      : `SELECT ${names} FROM json_populate_recordset(NULL::"${table}", $1)`;
    for (let first = 0; first < count; first += batch) {
      const length = Math.min(batch, count - first);
      const rows = JSON.stringify(Array.from({ length }, (_, index) => row(first + index)));
      await client.$executeRawUnsafe(`INSERT INTO "${table}" (${names}) ${from}`, rows);
    }
  });
  // Without this command, PostgreSQL would start an automatic VACUUM later, during a measurement.
  if (!isSqlite) await client.$executeRawUnsafe("VACUUM ANALYZE");
  await close();
}

/** Fills a new database with namespaces and users. */
export const seed = (url: string, namespaces: readonly NamespaceName[]): Promise<void> =>
  fill(url, (insert) => addNamespaces(insert, namespaces));

async function addNamespaces(insert: Insert, namespaces: readonly NamespaceName[]): Promise<void> {
  const now = storedTime(Date.now());
  const common = { passwordHash: await hashPassword(PASSWORD), createdAt: now };
  const owners = USERNAMES.map((name) => ({ id: name, username: name, email: `${name}@example.com` }));
  await insert("User", USERNAMES.length + OTHER_USERS, (index) => {
    const user = owners[index] ?? userOf(index - USERNAMES.length);
    return { ...common, ...user, name: user.username };
  });
  for (const name of namespaces) {
    const { owner, devices = 0, pending = false, keys = 0, rules = 0, members = 0 } = contentsOf(name);
    const tenantId = tenantOf(name);
    const member = (userId: string, role: string) => ({ tenantId, userId, role, addedAt: now });
    await insert("Namespace", 1, () => ({ tenantId, name, ownerId: owner, createdAt: now }));
    await insert("Member", 1, () => member(owner, "owner"));
    await insert("Member", members, (index) => member(userOf(index).id, GIVEN_ROLES[2]));
    await insert("Device", devices, (index) => deviceRow(name, index, pending));
    const tagId = `${tenantId} ${RARE_TAG}`;
    if (devices > 0) await insert("Tag", 1, () => ({ id: tagId, tenantId, name: RARE_TAG }));
    await insert("DeviceTagUse", Math.ceil(devices / 100), (index) => {
      return { deviceUid: uidOf(name, index * 100), tenantId, tagId, position: 0 };
    });
    await insert("PublicKey", keys, (index) => keyRow(tenantId, index, now));
    await insert("FirewallRule", rules, (index) => ruleRow(tenantId, index));
  }
}

/** Returns a time as a text that both databases accept. SQLite stores the text as it is. */
export const storedTime = (milliseconds: number): string => sqliteTime(new Date(milliseconds));

function deviceRow(name: NamespaceName, index: number, pending: boolean) {
  const { public_key: publicKey, tenant_id: tenantId, identity, info } = reportOf(name, index);
  return {
    uid: uidOf(name, index),
    tenantId,
    mac: identity.mac,
    name: `host-${index}`,
    publicKey,
    infoId: info.id,
    infoPrettyName: info.pretty_name,
    infoVersion: info.version,
    infoArch: info.arch,
    infoPlatform: info.platform,
    status: pending || index % 10 === 9 ? "pending" : "accepted",
    remoteAddr: "127.0.0.1",
    createdAt: storedTime(Date.now()),
    statusUpdatedAt: storedTime(Date.now()),
    // Each device has a different time of the last report, as in a real fleet.
    lastSeen: storedTime(Date.now() - index),
  };
}

function keyRow(tenantId: string, index: number, now: string) {
  const { name, username, filter, data, fingerprint } = keyOf(index);
  return { tenantId, fingerprint, name, data, username, hostname: filter.hostname, createdAt: now };
}

const ruleRow = (tenantId: string, index: number) => ({
  id: ruleIdOf(index),
  tenantId,
  action: "allow",
  active: true,
  priority: index,
  sourceIp: ".*",
  username: ".*",
  hostname: ".*",
});
