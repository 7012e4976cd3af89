import { hash, randomBytes } from "node:crypto";
import { parseSshPublicKey } from "../../sdk/dist/contract/index.js";
import { revisionOf } from "../../server/dist/changes/managedObject.js";
import { deviceUid } from "../../server/dist/features/devices/authDevice.js";

/** The users who own namespaces. */
export const USERNAMES = ["small", "large", "fleet", "writer"] as const;
export type Username = (typeof USERNAMES)[number];
export const PASSWORD = "correct-horse";

/** The owner of a namespace, and the number of objects of each kind. Omitted numbers are 0. */
interface Contents {
  readonly owner: Username;
  readonly devices?: number;
  /** True if all devices are pending. Otherwise, every tenth device is pending. */
  readonly pending?: true;
  readonly keys?: number;
  readonly rules?: number;
  /** Number of members besides the owner. */
  readonly members?: number;
}

/**
 * Number of objects for cases that change or delete each object only once. It exceeds the number of requests in a run
 * of the default length.
 */
const SUPPLY = 50_000;

const named = {
  keys: { owner: "small", keys: 100 },
  created: { owner: "small" },
  one: { owner: "small", devices: 1 },
  thousand: { owner: "large", devices: 1000 },
  many: { owner: "large", devices: 100_000 },
  // Only the attack benchmark uses this namespace.
  fleet: { owner: "fleet", devices: 20_000 },
  // Each of the following namespaces belongs to one case, so that no case depends on the changes of another case.
  "keys-by-tags": { owner: "writer", devices: 100 },
  "keys-updated": { owner: "writer", keys: SUPPLY },
  "keys-deleted": { owner: "writer", keys: SUPPLY },
  "rules-created": { owner: "writer" },
  "rules-updated": { owner: "writer", rules: 1000 },
  "devices-tagged": { owner: "writer", devices: 250 },
  "devices-accepted": { owner: "writer", devices: SUPPLY, pending: true },
  "members-changed": { owner: "writer", members: 1000 },
  "api-keys": { owner: "writer" },
} as const satisfies Readonly<Record<string, Contents>>;

/** Names of the empty namespaces for the case that adds members. */
export const TEAMS = Array.from({ length: 200 }, (_, index) => `team-${index}` as const);
const TEAM: Contents = { owner: "writer" };

type Named = keyof typeof named;
export type NamespaceName = Named | (typeof TEAMS)[number];
export const NAMESPACE_NAMES: readonly NamespaceName[] = [...(Object.keys(named) as Named[]), ...TEAMS];

/** Returns the initial content of a namespace. */
export function contentsOf(name: NamespaceName): Contents {
  const contents: Readonly<Partial<Record<NamespaceName, Contents>>> = named;
  return contents[name] ?? TEAM;
}

/** The namespace that the baseline server reads. */
export const FLOOR_NAMESPACE = "keys";

/** Returns the tenant id of a seeded namespace. */
export const tenantOf = (name: NamespaceName): string =>
  `00000000-0000-4000-8000-${String(NAMESPACE_NAMES.indexOf(name)).padStart(12, "0")}`;

/** The tag of every hundredth device, starting with the first. */
export const RARE_TAG = "edge";

const AGENT_KEY = `-----BEGIN RSA PUBLIC KEY-----\n${randomBytes(270).toString("base64")}\n-----END RSA PUBLIC KEY-----\n`;
const INFO = {
  id: "debian",
  pretty_name: "Debian GNU/Linux 12",
  version: "v0.19.0",
  arch: "amd64",
  platform: "native",
} as const;

/** Returns the report that the agent of a seeded device sends. */
export const reportOf = (name: NamespaceName, index: number) => ({
  info: INFO,
  identity: { mac: index.toString(16).padStart(12, "0") },
  public_key: AGENT_KEY,
  tenant_id: tenantOf(name),
});

/** Returns the uid of a seeded device. */
export function uidOf(name: NamespaceName, index: number): string {
  const { identity, public_key: publicKey, tenant_id: tenantId } = reportOf(name, index);
  return deviceUid({ mac: identity.mac, publicKey, tenantId });
}

const ED25519 = "ssh-ed25519";
const BLOB_START = Buffer.from(`\0\0\0\x0b${ED25519}\0\0\0\x20`, "latin1");

/**
 * Returns the OpenSSH line of a public key that has no private key. Generating real key pairs would slow down the load
 * generator.
 * @param key 32 bytes
 */
export const keyLine = (key: Buffer): string =>
  `${ED25519} ${Buffer.concat([BLOB_START, key]).toString("base64")}`;

/** Returns a seeded public key. Every namespace has the same keys. */
export function keyOf(index: number) {
  const line = keyLine(hash("sha256", String(index), "buffer"));
  const declared = { name: `key-${index}`, username: "^(web|db)-[0-9]+$", filter: { hostname: ".*" } };
  return {
    ...declared,
    data: Buffer.from(`${line}\n`).toString("base64"),
    fingerprint: parseSshPublicKey(line).fingerprint,
    revision: revisionOf(declared),
  };
}

/** Returns the id of a seeded firewall rule. Seeded ids are much larger than the ids that the database assigns. */
export const ruleIdOf = (index: number): number => 1_000_000 + index;

/** Number of users who own no namespace. */
export const OTHER_USERS = 1000;

/** Returns a user who owns no namespace. The users with the lowest numbers are the members of a namespace. */
export const userOf = (index: number) => ({
  id: index.toString(16).padStart(24, "0"),
  username: `user-${index}`,
  email: `user-${index}@example.com`,
});

/** Roles that a case assigns to members in turn. Seeded members have the last role. */
export const GIVEN_ROLES = ["observer", "operator", "administrator"] as const;
