import { randomBytes } from "node:crypto";
import { parseSshPublicKey } from "../../sdk/dist/contract/index.js";
import { deviceUid } from "../../server/dist/features/devices/authDevice.js";
import { hashPassword } from "../../server/dist/secrets/passwords.js";
import { sshKeyLine } from "../../test/provider/support/programs.ts";
import { benchDatabases, type DatabaseName, openForBench, type Row } from "./database.ts";

/** The users, who own a namespace or more each. */
export const USERNAMES = ["small", "large", "fleet"] as const;
export type Username = (typeof USERNAMES)[number];
export const PASSWORD = "correct-horse";

/** The namespaces, and how many devices and keys each of them holds. */
export const NAMESPACES = {
  keys: { owner: "small", devices: 0, keys: 100 },
  created: { owner: "small", devices: 0, keys: 0 },
  one: { owner: "small", devices: 1, keys: 0 },
  thousand: { owner: "large", devices: 1000, keys: 0 },
  many: { owner: "large", devices: 100_000, keys: 0 },
  // Of the attacks alone.
  fleet: { owner: "fleet", devices: 20_000, keys: 0 },
} as const;
export type NamespaceName = keyof typeof NAMESPACES;

export const NAMESPACE_NAMES = Object.keys(NAMESPACES) as NamespaceName[];

/** Tenant of a seeded namespace. */
export const tenantOf = (name: NamespaceName): string =>
  `00000000-0000-4000-8000-${String(NAMESPACE_NAMES.indexOf(name)).padStart(12, "0")}`;

/** The namespace that the floor reads. */
export const FLOOR_NAMESPACE = "keys";

/** Devices with this tag are one in a hundred. */
export const RARE_TAG = "edge";

const AGENT_KEY = `-----BEGIN RSA PUBLIC KEY-----\n${randomBytes(270).toString("base64")}\n-----END RSA PUBLIC KEY-----\n`;
const INFO = {
  id: "debian",
  pretty_name: "Debian GNU/Linux 12",
  version: "v0.19.0",
  arch: "amd64",
  platform: "native",
} as const;

const macOf = (index: number): string =>
  `06:${index
    .toString(16)
    .padStart(10, "0")
    .replaceAll(/(..)(?=.)/g, "$1:")}`;

/** What the agent of a seeded device sends when it reports. */
export const reportOf = (name: NamespaceName, index: number) => ({
  info: INFO,
  identity: { mac: macOf(index) },
  public_key: AGENT_KEY,
  tenant_id: tenantOf(name),
});

function deviceRow(name: NamespaceName, index: number, now: Date) {
  const { public_key: publicKey, tenant_id: tenantId, identity } = reportOf(name, index);
  return {
    uid: deviceUid({ mac: identity.mac, publicKey, tenantId }),
    tenantId,
    mac: identity.mac,
    name: `host-${index}`,
    publicKey,
    infoId: INFO.id,
    infoPrettyName: INFO.pretty_name,
    infoVersion: INFO.version,
    infoArch: INFO.arch,
    infoPlatform: INFO.platform,
    status: index % 10 === 9 ? "pending" : "accepted",
    remoteAddr: "127.0.0.1",
    createdAt: now,
    statusUpdatedAt: now,
    // Each at a time of its own, as devices report.
    lastSeen: new Date(now.getTime() - index),
  };
}

function keyRow(name: NamespaceName, index: number, now: Date) {
  const line = sshKeyLine();
  return {
    tenantId: tenantOf(name),
    fingerprint: parseSshPublicKey(line).fingerprint,
    name: `key-${index}`,
    data: Buffer.from(`${line}\n`).toString("base64"),
    username: "^(web|db)-[0-9]+$",
    hostname: ".*",
    createdAt: now,
  };
}

const rowsOf = <T>(count: number, row: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => row(index));

/** Fills a new database with namespaces and their users: its layout by the service, its rows directly. */
export async function seed(
  database: DatabaseName,
  url: string,
  namespaces: readonly NamespaceName[],
): Promise<void> {
  await (await openForBench(url)).close();
  const { insert: insertInto, settle } = benchDatabases[database];
  const insert = async (table: string, rows: readonly Row[]) => {
    if (rows.length > 0) await insertInto(url, table, rows);
  };
  const now = new Date();
  const passwordHash = await hashPassword(PASSWORD);
  await insert(
    "User",
    USERNAMES.map((username) => {
      const email = `${username}@example.com`;
      return { id: username, username, name: username, email, passwordHash, createdAt: now };
    }),
  );
  for (const name of namespaces) {
    const tenantId = tenantOf(name);
    const { owner, devices, keys } = NAMESPACES[name];
    await insert("Namespace", [{ tenantId, name, ownerId: owner, createdAt: now }]);
    await insert("Member", [{ tenantId, userId: owner, role: "owner", addedAt: now }]);
    const deviceRows = rowsOf(devices, (index) => deviceRow(name, index, now));
    const tagged = deviceRows.filter((_, index) => index % 100 === 0);
    await insert("Device", deviceRows);
    await insert(
      "DeviceTag",
      tagged.map(({ uid }) => ({ deviceUid: uid, tenantId, tag: RARE_TAG, position: 0 })),
    );
    await insert(
      "PublicKey",
      rowsOf(keys, (index) => keyRow(name, index, now)),
    );
  }
  await settle(url);
}
