import { ROLES, type Role } from "@gatehouse-access/sdk/contract";
import { expiryOf } from "@gatehouse-access/sdk/policy";
import { DAY } from "@gatehouse-access/sdk/times";
import type { ResourceValues, Shown } from "../../engine/index.ts";
import { changeList } from "../../model/changes.ts";
import { endText } from "../../model/changeTexts.ts";
import type { Draft } from "../../model/draft.ts";
import { type Kind, listedBy } from "../../model/kind.ts";
import type { HasObjects } from "../../model/namespaceObjects.ts";
import type { LiveObject, Objects } from "../../model/object.ts";
import { hasOwnCredential, isHidden, nameIn, outputOf, type PlannedStep } from "../../model/plannedStep.ts";
import { gainedRole } from "../../model/roles.ts";
import type { ApiKey } from "../../service/listings.ts";
import type { Style } from "../../style.ts";
import type { Values } from "../../values.ts";
import { byTexts } from "../../words.ts";
import { apiKeyIdentity } from "./listing.ts";
import { definition, overlapDays } from "./resource.ts";

interface KeyState {
  readonly tenant: string;
  readonly name: string;
  /**
   * The role of the key. A new key without a declared role gets the role of its creator. Undefined if that role is
   * unknown.
   */
  readonly role: Role | undefined;
  /** The expiry time of the key. Empty if the key does not expire. */
  readonly expiresAt: string;
  readonly createdAt: string;
  /** The creator of the key. Empty for a key that a plan creates. */
  readonly createdBy: string;
}

const stateOf = ({ state }: LiveObject) => state as unknown as KeyState;

/**
 * Returns the map key of an API key: its creation time and its creator. The name is not used, because it can change. A
 * key that a plan creates has no creator yet, so its map key is the URN of its resource.
 */
const keyOf = (object: LiveObject): string =>
  stateOf(object).createdBy === "" ? String(object.facts?.urn) : apiKeyIdentity(stateOf(object));

export const apiKey: Kind = {
  definition,
  keyOf,
  reading: listedBy(definition, {
    what: "API keys",
    missed: "unmanaged API keys cannot be detected",
  }),
  parts: undefined,
  watched: {
    keptBy: (_object, { credential }) =>
      credential === "apiKey"
        ? "this run may use this API key; repair with a user's credential, or revoke the key manually"
        : undefined,
  },
  operations: { create: ["createApiKey"], update: ["updateApiKey"], delete: ["deleteApiKey"] },
  plan: {
    stage: "objects",
    unknownAfter: keysWithoutRole,
    keyOf: ({ outputs }) => identityOf(outputs),
    create: createKey,
    update: updateKey,
    remove: removeKey,
  },
  quota: undefined,
  decides: undefined,
  role: (object) => {
    const { role, expiresAt } = stateOf(object);
    return role && { role, until: expiresAt || null };
  },
  changes: changeList<ApiKeyChange>({
    list: "apiKeys",
    title: "API key changes",
    what: "API key change",
    subject: "API key ",
    between: (before, after) => apiKeyChanges(apiKeysOf(before) ?? [], apiKeysOf(after) ?? []),
    sentence: apiKeySentence,
    roles: (change) => gainedRole(change, `API key ${change.name}`, change.isLonger === true),
  }),
  linted: (objects) => ({
    apiKeys: keysIn(objects).map(({ name, role, expiresIn }) => ({
      name,
      role,
      expiresAt: expiryOf(expiresIn),
    })),
  }),
  imported: { file: "apiKeys", naming: "name" },
};

/**
 * Returns the API keys of a namespace. Omits keys whose role is unknown. Returns undefined if the API keys could not be
 * read.
 */
export function apiKeysOf(state: HasObjects): ApiKey[] | undefined {
  const objects = state.of(definition);
  return objects && keysIn(objects);
}

const keysIn = (objects: Objects): ApiKey[] =>
  Array.from(objects.values()).flatMap((object): ApiKey[] => {
    const { tenant: tenantId, name, role, expiresAt, createdAt, createdBy } = stateOf(object);
    if (role === undefined) return [];
    const updatedAt = String(object.facts?.updatedAt ?? createdAt);
    // The service returns the expiry time in seconds since 1970.
    const expiresIn = expiresAt === "" ? -1 : Math.floor(Date.parse(expiresAt) / 1000);
    return [{ tenantId, name, role, expiresIn, createdAt, updatedAt, createdBy } as ApiKey];
  });

/** Returns a sentence about each new API key whose role is unknown. */
function keysWithoutRole(draft: Draft): string[] {
  return [...(draft.of(definition)?.values() ?? [])].flatMap((object) =>
    stateOf(object).role === undefined
      ? [`API key "${object.name}" will have the role of its creator, which is unknown; declare the role`]
      : [],
  );
}

const identityOf = ({ createdAt, createdBy }: ResourceValues["outputs"]) =>
  apiKeyIdentity({ createdAt: String(createdAt), createdBy: String(createdBy) });

/**
 * Returns the identities of the API keys that a key has replaced, and the time until which each of them stays valid.
 */
const previousOf = ({ outputs }: ResourceValues) =>
  [outputs.previous ?? []]
    .flat()
    .flatMap((old: Shown) =>
      typeof old !== "object" || old === null || Array.isArray(old)
        ? []
        : [{ identity: identityOf(old), until: String(old.until) }],
    );

/**
 * Returns the current name of an API key that a state contains. If the key no longer exists on the service, returns the
 * name in the state.
 */
function nameToday({ live }: Draft, before: ResourceValues): string {
  const own = identityOf(before.outputs);
  return live.of(definition)?.get(own)?.name ?? outputOf(before, "name");
}

function removeKey(draft: Draft, { step, after }: PlannedStep, before: ResourceValues): void {
  const own = identityOf(before.outputs);
  const overlap = after ? overlapDays(after.inputs as Parameters<typeof overlapDays>[0]) : 0;
  const left = draft.of(definition)?.get(own);
  if (step.op === "replace" && overlap > 0) {
    // The names of keys are unique. During the overlap, the provider therefore renames the old key.
    if (left && left.name === after?.inputs.name)
      draft.put(definition, own, { ...left.state, name: `${left.name} (replaced)` });
    return;
  }
  for (const identity of [own, ...previousOf(before).map((old) => old.identity)])
    draft.remove(definition, identity);
}

function createKey(draft: Draft, planned: PlannedStep, inputs: Values): void {
  const { live, now, creatorRole } = draft;
  const { step, before, after } = planned;
  const { validDays } = inputs;
  const createdAt = now.toISOString();
  // If a deleted key is drift, a plan that reverts the drift restores the key with the role in the state.
  const restored = ROLES.find((known) => known === after?.outputs.role);
  const creator = hasOwnCredential(step) ? undefined : creatorRole;
  // Without a declared name, the new key gets a generated name, as the replaced key did.
  const declared = after?.inputs.name;
  const generated = before ? nameToday(draft, before) : `${step.name} (new)`;
  const state = {
    ...inputs,
    tenant: live.tenant,
    createdAt,
    createdBy: "",
    name: typeof declared === "string" && !isHidden(declared) ? nameIn(planned) : generated,
    role: inputs.role ?? restored ?? creator,
    expiresAt: validDays === -1 ? "" : new Date(now.getTime() + Number(validDays) * DAY).toISOString(),
  };
  draft.put(definition, step.urn, state, {
    definition,
    id: `${live.tenant}/${state.name}`,
    name: state.name,
    state,
    facts: { urn: step.urn },
  });
}

function updateKey(draft: Draft, _planned: PlannedStep, inputs: Values, before: ResourceValues): void {
  const { now } = draft;
  const identity = identityOf(before.outputs);
  const key = draft.existing(definition, identity);
  draft.put(definition, identity, { ...key.state, ...inputs });
  const time = now.toISOString();
  for (const old of previousOf(before)) if (old.until <= time) draft.remove(definition, old.identity);
}

/** A change to an API key: the key is added, removed or replaced, or its role changes. */
export interface ApiKeyChange {
  /**
   * The type of the change. `replaced`: a new key with the same name replaces the key. The replaced key may then keep
   * working until the end of its overlap, the time in which both keys work.
   */
  readonly change: "added" | "removed" | "replaced" | "role";
  readonly name: string;
  /** The role before the change. Omitted for a new key. */
  readonly from?: Role;
  /** The role after the change. Omitted for a removed key. */
  readonly to?: Role;
  /**
   * The expiry time of a new key, in RFC 3339. Null if the key does not expire. Omitted if the key is removed, or only
   * its role changes.
   */
  readonly until?: string | null;
  /**
   * The expiry time of the replaced key, in RFC 3339. Null if the replaced key does not expire. Omitted if no key is
   * replaced.
   */
  readonly untilBefore?: string | null;
  /**
   * True if the validity period of the new key is more than a day longer than the validity period of the replaced key.
   */
  readonly isLonger?: boolean;
}

type Keyed = Pick<ApiKey, "name" | "role" | "expiresIn" | "createdAt" | "createdBy">;

/**
 * Returns the changes to the API keys, sorted by name. If a new key has the name of an existing key, the existing key
 * counts as replaced, even if it keeps working until its overlap ends.
 */
function apiKeyChanges(before: readonly Keyed[], after: readonly Keyed[]): ApiKeyChange[] {
  const now = new Date();
  // An expired key gives no role.
  const lasts = ({ expiresIn }: Keyed) =>
    (expiryOf(expiresIn)?.getTime() ?? Number.POSITIVE_INFINITY) > now.getTime();
  const [olds, keys] = [before.filter(lasts), after.filter(lasts)];
  const was = new Map(olds.map((key) => [apiKeyIdentity(key), key]));
  const is = new Map(keys.filter(isLive).map((key) => [apiKeyIdentity(key), key]));
  const replaced = new Set<Keyed>();
  const changes = keys.flatMap((key): ApiKeyChange[] => {
    const { name, role } = key;
    const same = isLive(key) ? was.get(apiKeyIdentity(key)) : undefined;
    if (same) return same.role === role ? [] : [{ change: "role", name, from: same.role, to: role }];
    // The new key replaces an old key with the same name, unless the old key keeps working under a different name. A
    // new key replaces at most one old key, so further new keys with the same name are additional keys.
    const old = olds.find((namesake) => {
      const kept = is.get(apiKeyIdentity(namesake));
      const isReplaced = kept === undefined || [name, `${name} (replaced)`].includes(kept.name);
      return namesake.name === name && !replaced.has(namesake) && isReplaced;
    });
    // If two plans are compared, both plans may create the same key.
    const isSame = old !== undefined && !isLive(old) && old.role === role && endIn(old) === endIn(key);
    if (old) replaced.add(old);
    if (isSame) return [];
    const until = endIn(key);
    if (!old) return [{ change: "added", name, to: role, until }];
    const isLonger = validityOf(key) > validityOf(old) + DAY;
    const ends = { until, untilBefore: endIn(old), ...(isLonger && { isLonger }) };
    return [{ change: "replaced", name, from: old.role, to: role, ...ends }];
  });
  const removed = olds.flatMap((key): ApiKeyChange[] => {
    if (replaced.has(key) || is.has(apiKeyIdentity(key))) return [];
    return [{ change: "removed", name: key.name, from: key.role }];
  });
  return [...changes, ...removed].sort(byTexts(({ name }) => name));
}

/** Returns true for a key that exists on the service. A key that a plan creates has no creator yet. */
const isLive = ({ createdBy }: Keyed): boolean => createdBy !== "";

/** Returns the time from the creation of a key to its expiry, in milliseconds. */
const validityOf = ({ createdAt, expiresIn }: Keyed): number =>
  (expiryOf(expiresIn)?.getTime() ?? Number.POSITIVE_INFINITY) - Date.parse(createdAt);

/** Returns the expiry time of a key in RFC 3339, or null if the key does not expire. */
const endIn = ({ expiresIn }: Keyed): string | null => expiryOf(expiresIn)?.toISOString() ?? null;

/** Returns a sentence about a changed API key: `ci is added as operator until 2026-12-01 18:00 UTC`. */
function apiKeySentence(
  { change, name, from, to, until, untilBefore = null, isLonger }: ApiKeyChange,
  style: Style,
): string {
  const before = isLonger ? `, for a longer time (before: ${endText(untilBefore)})` : "";
  const end = until === undefined ? "" : ` ${endText(until)}${before}`;
  switch (change) {
    case "added":
      return `${style.name(name)} is added as ${to}${end}`;
    case "removed":
      return `${style.name(name)} is removed (was ${from})`;
    case "replaced":
      return `${style.name(name)} is replaced by a new key, as ${to}${from === to ? "" : ` (was ${from})`}${end}`;
    case "role":
      return `${style.name(name)} becomes ${to} (was ${from})`;
  }
}
