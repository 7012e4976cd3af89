import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { type Client, createClient, passwordCredential } from "../../sdk/index.ts";
import type { Fleet } from "./fleet.ts";
import { keyData } from "./policy.ts";

/** The values of an object that programs declare, by the names of the inputs. */
export type Fields = Readonly<Record<string, unknown>>;

type AuditEntry = Awaited<ReturnType<Client["getAuditTrail"]>>[number];

/** The kinds of objects that a walk changes. */
const WALK_KINDS = ["PublicKey", "FirewallRule", "Member", "ApiKey", "DeviceTags", "Namespace"] as const;
export type WalkKind = (typeof WALK_KINDS)[number];

/** An object as the lists of the service contain it. */
export interface WalkObject {
  readonly kind: WalkKind;
  /** The id of the object on the service: fingerprint, rule id, user id, time of creation, device uid or tenant id. */
  readonly id: string;
  readonly fields: Fields;
  /** The stack that declared the object last, according to the service. */
  readonly owner: string | undefined;
}

/** All objects of the service, by kind and id. */
export type Snapshot = ReadonlyMap<string, WalkObject>;

export const keyOf = ({ kind, id }: Pick<WalkObject, "kind" | "id">): string => `${kind} ${id}`;

/** One object that programs may declare. Each program declares it at most once, under the slot's name. */
export interface Slot {
  readonly name: string;
  readonly kind: WalkKind;
  /** The inputs that identify the object. */
  readonly fixed: Fields;
  /** The possible values of all other inputs. */
  readonly pools: Readonly<Record<string, readonly unknown[]>>;
}

/** Returns the MD5 fingerprint of an OpenSSH public key line, as 16 hexadecimal pairs. */
function fingerprintOf(line: unknown): string {
  const [, blob = ""] = String(line).split(" ");
  const digest = createHash("md5").update(Buffer.from(blob, "base64")).digest("hex");
  return digest.match(/../g)?.join(":") ?? "";
}

const filters = [".*", "^web$", "^db$"].map((hostname) => ({ hostname }));
const sources = [".*", "^10\\.", "^203\\."];
const roles = ["observer", "operator", "administrator"];

const keySlot = (name: string): Slot => ({
  name,
  kind: "PublicKey",
  fixed: { data: keyData(name) },
  pools: {
    name: ["laptop", "phone", "spare"],
    username: ["^root$", "^(ana|root)$", "^ana$"],
    filter: filters,
  },
});

const ruleSlot = (name: string): Slot => ({
  name,
  kind: "FirewallRule",
  // Rules have no name. The login identifies the slot of a rule.
  fixed: { username: `^${name}$` },
  pools: {
    action: ["allow", "deny"],
    priority: [1, 2, 3],
    sourceIp: sources,
    filter: filters,
    active: [true, false],
  },
});

const memberSlot = (name: string): Slot => ({
  name,
  kind: "Member",
  fixed: { email: `${name}@example.com` },
  pools: { role: roles },
});

const apiKeySlot = (name: string): Slot => ({
  name,
  kind: "ApiKey",
  fixed: { validDays: -1 },
  pools: { name: ["x", "y", "z"].map((end) => `${name}-${end}`), role: roles },
});

const tagsSlot = (name: string): Slot => ({
  name,
  kind: "DeviceTags",
  fixed: { device: name },
  pools: { tags: [["edge"], ["lab", "prod"], ["edge", "prod"]] },
});

const namespaceSlot = (name: string): Slot => ({
  name,
  kind: "Namespace",
  fixed: { name },
  pools: {
    settings: [0, 60].flatMap((sessionMaxMinutes) =>
      ["", "hello", "maintenance"].map((connectionAnnouncement) => ({
        sessionMaxMinutes,
        connectionAnnouncement,
        sessionRecord: connectionAnnouncement !== "hello",
      })),
    ),
  },
});

/** The name of the namespace whose settings programs declare. No program deletes it. */
const NAMESPACE = "trials";
const DEVICES = ["walk-device-a", "walk-device-b"];
const USERS = ["walk-ana", "walk-bob"];

export const SLOTS: readonly Slot[] = [
  ...["key-a", "key-b", "key-c", "key-d"].map(keySlot),
  ...["rule-a", "rule-b", "rule-c", "rule-d"].map(ruleSlot),
  ...USERS.map(memberSlot),
  ...["api-a", "api-b"].map(apiKeySlot),
  ...DEVICES.map(tagsSlot),
  namespaceSlot(NAMESPACE),
];

/** Returns the slot with this name. */
export function slotOf(name: string): Slot {
  const slot = SLOTS.find((one) => one.name === name);
  if (!slot) throw new Error(`no slot ${name}`);
  return slot;
}

/** Returns the objects that a slot may declare, sorted by their fields, since their ids differ in each run. */
export const objectsOf = ({ kind, fixed, pools }: Slot, snapshot: Snapshot) =>
  [...snapshot.values()]
    .filter((object) => {
      if (object.kind !== kind) return false;
      if (kind === "PublicKey") return object.id === fingerprintOf(fixed.data);
      if (kind === "ApiKey") return pools.name?.includes(object.fields.name);
      return Object.entries(object.fields).every(
        ([field, value]) => !(field in fixed) || fixed[field] === value,
      );
    })
    .sort((one, two) => (text(one.fields) < text(two.fields) ? -1 : 1));

/**
 * Returns the seed of a walk. The seed is fixed, so that a run fails only after a change of the code. TEST_WALK_SEED sets
 * another seed, to search for new faults.
 */
export const walkSeed = (fixed: number): number => Number(process.env.TEST_WALK_SEED ?? fixed);

/** Random choices of a walk. A seed always gives the same choices. */
export class Choices {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** Returns a number from 0 up to, but not including, 1. Algorithm: mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let value = this.#state;
    value = Math.imul(value ^ (value >>> 15), value | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32;
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** @throws Error if the list is empty */
  of<T>(list: readonly T[]): T {
    const index = Math.floor(this.next() * list.length);
    if (index >= list.length) throw new Error("nothing to choose from");
    return list[index] as T;
  }

  /** Returns one of the names, each as often as its weight says. */
  weighted<T extends string>(weights: Readonly<Record<T, number>>): T {
    const entries = Object.entries<number>(weights);
    let rest = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    const found = entries.find(([, weight]) => {
      rest -= weight;
      return rest < 0;
    });
    return (found ?? entries[0])?.[0] as T;
  }
}

/** Returns random inputs of a slot's object. */
export const randomFields = (slot: Slot, choices: Choices): Fields =>
  Object.fromEntries(Object.entries(slot.pools).map(([field, values]) => [field, choices.of(values)]));

/** A service with two devices, two users, a second namespace, and an administrator who changes objects manually. */
export interface WalkService {
  /** The user name of the administrator who changes objects manually. */
  readonly administrator: string;
  /** The ids of both namespaces. */
  readonly tenants: readonly [home: string, second: string];
  /** Reads all objects. */
  snapshot(): Promise<Snapshot>;
  /** Returns all entries of the audit trails since the last call, the oldest first. */
  newEntries(): Promise<AuditEntry[]>;
  /** Changes a field of an object as the administrator. */
  change(object: WalkObject, field: string, value: unknown): Promise<void>;
  /** Deletes an object as the administrator. */
  remove(object: WalkObject): Promise<void>;
  /** Creates an object that no program declares, as the administrator. */
  create(slot: Slot, fields: Fields): Promise<void>;
  close(): Promise<void>;
}

const ADMINISTRATOR = "boss";
const page = { query: { perPage: 100 } } as const;

const sortedTags = (tags: readonly string[]) => [...tags].sort();

/** Prepares a service for a walk. */
export async function startWalk({ client, tenant, service, enroll }: Fleet): Promise<WalkService> {
  const uids = new Map<string, string>();
  for (const name of DEVICES) uids.set(await enroll(name), name);
  const login = { username: ADMINISTRATOR, password: "correct-horse" };
  await service.createUser(login);
  for (const username of USERS) await service.createUser({ username, password: "correct-horse" });
  const { tenantId: second } = await client.createNamespace({ body: { name: NAMESPACE } });
  const body = { email: `${ADMINISTRATOR}@example.com`, role: "administrator" } as const;
  for (const place of [tenant, second])
    await client.forTenant(place).inviteMember({ params: { tenant: place }, body });
  const administrator = createClient({ url: service.url, credential: passwordCredential(login) });
  const boss = administrator.forTenant(tenant);
  const lastIds = new Map<string, number>();

  async function snapshot(): Promise<Snapshot> {
    const [keys, rules, apiKeys, home, other, devices] = await Promise.all([
      client.getPublicKeys(page),
      client.getFirewallRules(page),
      client.listApiKeys(page),
      client.getNamespace({ params: { tenant } }),
      client.forTenant(second).getNamespace({ params: { tenant: second } }),
      client.getDevices(page),
    ]);
    const { connectionAnnouncement = "", sessionRecord = true, sessionMaxMinutes = 0 } = other.settings ?? {};
    const objects: WalkObject[] = [
      ...keys.map(({ fingerprint: id, name, username, filter: { hostname }, declaredBy }) => ({
        kind: "PublicKey" as const,
        id,
        fields: { name, username, filter: { hostname } },
        owner: declaredBy?.stack,
      })),
      ...rules.map(
        ({ id, action, priority, sourceIp, username, filter: { hostname }, active, declaredBy }) => ({
          kind: "FirewallRule" as const,
          id,
          owner: declaredBy?.stack,
          fields: { action, priority, sourceIp, username, filter: { hostname }, active },
        }),
      ),
      ...home.members
        .filter(({ email }) => USERS.some((user) => email === `${user}@example.com`))
        .map(({ id, role, email, declaredBy }) => ({
          kind: "Member" as const,
          id,
          fields: { email, role },
          owner: declaredBy?.stack,
        })),
      ...apiKeys.map(({ createdAt, name, role, declaredBy }) => ({
        kind: "ApiKey" as const,
        id: createdAt,
        fields: { name, role },
        owner: declaredBy?.stack,
      })),
      // A device without tags counts as an object that does not exist.
      ...devices
        .filter(({ uid, tags }) => uids.has(uid) && tags.length > 0)
        .map(({ uid, tags, tagsDeclaredBy }) => ({
          kind: "DeviceTags" as const,
          id: uid,
          owner: tagsDeclaredBy?.stack,
          fields: { device: uids.get(uid), tags: sortedTags(tags) },
        })),
      {
        kind: "Namespace" as const,
        id: second,
        owner: other.declaredBy?.stack,
        fields: { settings: { sessionMaxMinutes, connectionAnnouncement, sessionRecord } },
      },
    ];
    return new Map(objects.map((object) => [keyOf(object), object]));
  }

  async function newEntries(): Promise<AuditEntry[]> {
    const all = await Promise.all(
      [tenant, second].map(async (place) => {
        const last = lastIds.get(place);
        const entries: AuditEntry[] = await client
          .forTenant(place)
          .getAuditTrail({ params: { tenant: place }, query: { perPage: 100 } });
        lastIds.set(place, entries[0]?.id ?? last ?? 0);
        return entries.filter(({ id }) => last === undefined || id > last).reverse();
      }),
    );
    return all.flat();
  }

  async function change({ kind, id, fields }: WalkObject, field: string, value: unknown): Promise<void> {
    const wanted = { ...fields, [field]: value };
    switch (kind) {
      case "PublicKey":
        await boss.updatePublicKey({ params: { fingerprint: id }, body: wanted as never });
        break;
      case "FirewallRule":
        await boss.updateFirewallRule({ params: { id }, body: wanted as never });
        break;
      case "Member":
        await boss.updateMember({ params: { tenant, uid: id }, body: { role: value as "observer" } });
        break;
      case "ApiKey":
        await boss.updateApiKey({ params: { key: String(fields.name) }, body: { [field]: value } });
        break;
      case "DeviceTags":
        await boss.updateDeviceTags({ params: { uid: id }, body: { tags: value as string[] } });
        break;
      case "Namespace":
        await administrator
          .forTenant(id)
          .editNamespace({ params: { tenant: id }, body: { settings: value as Record<string, never> } });
    }
  }

  async function remove({ kind, id, fields }: WalkObject): Promise<void> {
    if (kind === "PublicKey") await boss.deletePublicKey({ params: { fingerprint: id } });
    else if (kind === "FirewallRule") await boss.deleteFirewallRule({ params: { id } });
    else if (kind === "Member") await boss.removeMember({ params: { tenant, uid: id } });
    else if (kind === "ApiKey") await boss.deleteApiKey({ params: { key: String(fields.name) } });
    else if (kind === "DeviceTags") {
      for (const tag of fields.tags as string[]) await boss.deleteDeviceTag({ params: { uid: id, tag } });
    }
  }

  async function create({ kind, fixed }: Slot, fields: Fields): Promise<void> {
    const body = { ...fixed, ...fields } as never;
    if (kind === "PublicKey") {
      const data = Buffer.from(String(fixed.data)).toString("base64");
      await boss.createPublicKey({ body: { ...(fields as object), data } as never });
    } else if (kind === "FirewallRule") await boss.createFirewallRule({ body });
    else if (kind === "Member") await boss.inviteMember({ params: { tenant }, body });
    else if (kind === "DeviceTags") {
      const [uid = ""] = [...uids].find(([, name]) => name === fixed.device) ?? [];
      await boss.updateDeviceTags({ params: { uid }, body: { tags: fields.tags as string[] } });
    }
  }

  await newEntries();
  return {
    administrator: ADMINISTRATOR,
    tenants: [tenant, second] as const,
    snapshot,
    newEntries,
    change,
    remove,
    create,
    close: () => administrator.close(),
  };
}

/** The step of a preview for one resource. */
export interface Shown {
  readonly op: "create" | "update" | "delete";
  /** The name of the resource in the program. */
  readonly name: string;
  readonly kind: WalkKind;
  /** The object in the state. Undefined for a creation. */
  readonly id: string | undefined;
  /**
   * The stack that declared the object last, according to the state that is deleted. Another stack after a move whose
   * new stack has not run yet.
   */
  readonly declarer?: string;
  /** The values that the preview showed as current, and the values that the program declares. Empty for a deletion. */
  readonly fields: Readonly<Record<string, { readonly before: unknown; readonly after: unknown }>>;
}

/**
 * Returns each change of the service that a preview did not show, each shown change that undid a change of another
 * actor, and each deletion of an object that another stack declared last.
 * @param stack the name of the stack that ran
 */
export function unshownChanges(
  before: Snapshot,
  after: Snapshot,
  shown: readonly Shown[],
  stack: string,
): string[] {
  const faults: string[] = [];
  for (const [key, object] of before) {
    const of = shown.filter(({ kind, id }) => kind === object.kind && id === object.id);
    const now = after.get(key);
    const isTags = object.kind === "DeviceTags";
    // The deletion of the tags of a device keeps tags of others, so it may look like a change.
    if (of.some(({ op }) => op === "delete") && (!now || isTags)) {
      if (isDeepStrictEqual(now?.fields, object.fields)) continue;
      const isForeign =
        object.owner !== undefined &&
        object.owner !== stack &&
        of.every(({ declarer }) => declarer !== object.owner);
      if (isForeign) faults.push(`${stack} deleted ${key}, which ${object.owner} declared last`);
      continue;
    }
    if (!now) {
      faults.push(`${stack} deleted ${key}, and the preview showed ${JSON.stringify(of)}`);
      continue;
    }
    for (const [field, value] of Object.entries(now.fields)) {
      const old = object.fields[field];
      if (isDeepStrictEqual(value, old)) continue;
      const change = of.find(({ op }) => op === "update")?.fields[field];
      if (!change || !isDeepStrictEqual(change.after, value)) {
        faults.push(`${stack} changed ${field} of ${key} from ${text(old)} to ${text(value)}: not shown`);
      } else if (!isDeepStrictEqual(change.before, old)) {
        faults.push(`${stack} changed ${field} of ${key}, and undid ${text(old)}: shown as ${text(change)}`);
      }
    }
  }
  // A device without tags counts as an object that does not exist, so an update may create the object.
  const creations = shown.filter(
    ({ op, kind }) => op === "create" || (op === "update" && kind === "DeviceTags"),
  );
  for (const [key, { kind, fields }] of after) {
    if (before.has(key)) continue;
    const index = creations.findIndex(
      (one) =>
        one.kind === kind &&
        Object.entries(one.fields).every(([name, { after: value }]) =>
          isDeepStrictEqual(fields[name], value),
        ),
    );
    if (index < 0) faults.push(`${stack} created ${key} with ${text(fields)}: not shown`);
    else creations.splice(index, 1);
  }
  return faults;
}

const text = (value: unknown) => JSON.stringify(value);
