import { hashPassword } from "../../server/dist/secrets/passwords.js";
import { benchDatabases, type DatabaseName, openForBench, type Row } from "./database.ts";
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

function deviceRow(name: NamespaceName, index: number, now: Date): Row {
  const { public_key: publicKey, tenant_id: tenantId, identity, info } = reportOf(name, index);
  const isPending = contentsOf(name).pending || index % 10 === 9;
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
    status: isPending ? "pending" : "accepted",
    remoteAddr: "127.0.0.1",
    createdAt: now,
    statusUpdatedAt: now,
    // Each at a time of its own, as devices report.
    lastSeen: new Date(now.getTime() - index),
  };
}

function keyRow(tenantId: string, index: number, now: Date): Row {
  const { name, username, filter, data, fingerprint } = keyOf(index);
  return { tenantId, fingerprint, name, data, username, hostname: filter.hostname, createdAt: now };
}

const ruleRow = (tenantId: string, index: number): Row => ({
  id: ruleIdOf(index),
  tenantId,
  action: "allow",
  active: true,
  priority: index,
  sourceIp: ".*",
  username: ".*",
  hostname: ".*",
});

const rowsOf = <T>(count: number, row: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => row(index));

/** The rows of a namespace, by their tables. */
function rowsIn(name: NamespaceName, now: Date): Readonly<Record<string, readonly Row[]>> {
  const { owner, devices = 0, keys = 0, rules = 0, members = 0 } = contentsOf(name);
  const tenantId = tenantOf(name);
  const member = (userId: string, role: string): Row => ({ tenantId, userId, role, addedAt: now });
  return {
    Namespace: [{ tenantId, name, ownerId: owner, createdAt: now }],
    Member: [member(owner, "owner"), ...rowsOf(members, (index) => member(userOf(index).id, GIVEN_ROLES[2]))],
    Device: rowsOf(devices, (index) => deviceRow(name, index, now)),
    DeviceTag: rowsOf(Math.ceil(devices / 100), (index) => ({
      deviceUid: uidOf(name, index * 100),
      tenantId,
      tag: RARE_TAG,
      position: 0,
    })),
    PublicKey: rowsOf(keys, (index) => keyRow(tenantId, index, now)),
    FirewallRule: rowsOf(rules, (index) => ruleRow(tenantId, index)),
  };
}

/** Fills a new database with namespaces and their users: its layout by the service, its rows directly. */
export async function seed(
  database: DatabaseName,
  url: string,
  namespaces: readonly NamespaceName[],
): Promise<void> {
  await (await openForBench(url)).close();
  const { insert, settle } = benchDatabases[database];
  const now = new Date();
  const passwordHash = await hashPassword(PASSWORD);
  const owners = USERNAMES.map((name) => ({ id: name, username: name, email: `${name}@example.com` }));
  const users = [...owners, ...rowsOf(OTHER_USERS, userOf)];
  await insert(
    url,
    "User",
    users.map((user) => ({ ...user, name: user.username, passwordHash, createdAt: now })),
  );
  const seeded = namespaces.map((name) => rowsIn(name, now));
  for (const table of Object.keys(seeded[0] ?? {})) {
    const rows = seeded.flatMap((tables) => tables[table] ?? []);
    if (rows.length > 0) await insert(url, table, rows);
  }
  await settle(url);
}
