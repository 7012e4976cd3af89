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
  /** Undefined if a new key gets the role of its creator, and the role of the creator is unknown. */
  readonly role: Role | undefined;
  /** Empty if the key does not expire. */
  readonly expiresAt: string;
  readonly createdAt: string;
  /** Empty for a key that a plan creates. */
  readonly createdBy: string;
}

const stateOf = ({ state }: LiveObject) => state as unknown as KeyState;

/**
 * Returns the key that identifies an API key: its creation time and its creator. The name is not used, because it can
 * change.
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

/** Returns the API keys of a namespace whose role is known. Returns undefined if the API keys could not be read. */
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

/** Returns the identities of replaced API keys, and the time until which each key stays valid. */
const previousOf = ({ outputs }: ResourceValues) =>
  [outputs.previous ?? []]
    .flat()
    .flatMap((old: Shown) =>
      typeof old !== "object" || old === null || Array.isArray(old)
        ? []
        : [{ identity: identityOf(old), until: String(old.until) }],
    );

/**
 * Returns the current name of an API key in the state. If the key no longer exists on the service, returns the name in
 * the state.
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
    // Names of keys are unique, so the provider renames the old key.
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
  // To revert the drift of a deleted key, the plan restores the key with the role in the state.
  const restored = ROLES.find((known) => known === after?.outputs.role);
  const creator = hasOwnCredential(step) ? undefined : creatorRole;
  // If the program does not declare a name, the new key gets a generated name, like the replaced key.
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

/** A change of an API key: the key is added, removed or replaced, or its role changes. */
export interface ApiKeyChange {
  /**
   * The type of the change. `replaced`: a new key with the same name replaces the key. The replaced key may keep
   * working until its overlap ends.
   */
  readonly change: "added" | "removed" | "replaced" | "role";
  readonly name: string;
  /** The role before the change. Omitted for a new key. */
  readonly from?: Role;
  /** The role after the change. Omitted for a removed key. */
  readonly to?: Role;
  /**
   * The expiry time of a new key, in RFC 3339. Null if the key does not expire. Omitted for a removed key and a changed
   * role.
   */
  readonly until?: string | null;
  /** The expiry time of the replaced key, in the form of `until`. */
  readonly untilBefore?: string | null;
  /** True if the new key is valid for longer than the replaced key. */
  readonly isLonger?: boolean;
}

type Keyed = Pick<ApiKey, "name" | "role" | "expiresIn" | "createdAt" | "createdBy">;

/**
 * Returns the changes of the API keys, sorted by name. If a new key has the name of an existing key, the existing key
 * is treated as replaced, even if it keeps working until its overlap ends.
 */
function apiKeyChanges(before: readonly Keyed[], after: readonly Keyed[]): ApiKeyChange[] {
  const now = new Date();
  // A key that has expired gives no role.
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
    // An old key is not replaced if it keeps working under a different name. A new key replaces at most one old key,
    // and further keys with the same name are additional keys.
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

/** Returns true for a key that exists on the service. A new key in a plan has no creator yet. */
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
