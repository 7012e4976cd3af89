import { createHash, randomBytes, randomUUID } from "node:crypto";
import { ConflictError, RequestError } from "@gatehouse-access/sdk";
import {
  apiKeys as contract,
  dateTime,
  role as roleSchema,
  tenantId,
  userId,
} from "@gatehouse-access/sdk/contract";
import { DAY } from "@gatehouse-access/sdk/times";
import { z } from "zod";
import { defineResource } from "../../model/defineResource.ts";
import {
  type Existing,
  type IsClaimed,
  listed as listedObject,
  liveFacts,
  type Origin,
} from "../../model/definition.ts";
import { type InputValues, optional, output, required, type State, tenantInput } from "../../model/fields.ts";
import { EXAMPLE_TENANT, IdForm } from "../../model/idForm.ts";
import { guarded } from "../../model/lockoutGuard.ts";
import { UnfinishedError } from "../../model/unfinishedError.ts";
import { hasEnded } from "../../model/validity.ts";
import { type Message, ResourceError, said } from "../../resourceError.ts";
import type { Connection, TenantClient } from "../../service/connection.ts";
import type { ApiKey } from "../../service/listings.ts";
import { agoText, inText } from "../../words.ts";
import { giveUpName, type HeldKey, listed, nameOf, rename, revoke } from "./heldKeys.ts";
import { apiKeyIdentity, apiKeys, type KeyIdentity } from "./listing.ts";

const { API_KEY_DAYS } = contract;
type ValidDays = (typeof API_KEY_DAYS)[number];

const MAX_NAME = 20;

const days = z.int().min(0);

const previous = z.object({
  tenant: tenantId.describe("The ID of the namespace of the key."),
  name: z.string().describe("The name that the key had when it was replaced."),
  createdAt: dateTime.describe("The time when the key was created."),
  createdBy: userId.describe("The ID of the user who created the key."),
  until: dateTime.describe("The time after which the next run revokes the key."),
});

const hasReplaced = ({ previous }: Readonly<Record<string, unknown>>): boolean =>
  Array.isArray(previous) && previous.length > 0;

const inputs = {
  tenant: tenantInput,
  name: optional(contract.createApiKey.body.shape.name, {
    description:
      "The name of the key. Must be unique in the namespace and contain 3 to 20 characters without white space. Defaults to a generated name.",
    notDecisive: "the name is only displayed",
  }),
  role: optional(roleSchema, {
    description:
      "The role of the key. Must not exceed the role of the user who creates the key. Defaults to the role of that user.",
  }),
  validDays: required(z.literal(API_KEY_DAYS), {
    description: "The number of days until the key expires. Must be `30`, `60`, `90`, `365` or `-1` (never).",
    replaces: true,
  }),
  rotateBefore: optional(days.max(364), {
    description:
      "The length of the period before expiration, in days, in which a run replaces the key with a new key.",
    default: 0,
    isLocal: true,
  }),
  overlap: optional(days.max(90), {
    description:
      "The number of days that a replaced key keeps working, but not longer than until it expires. The first run after this period revokes the replaced key. If `0`, the run that replaces a key also revokes it. Defaults to `1` for a key that a run replaces before expiration, otherwise to `0`.",
    initial: 0,
    isLocal: true,
  }),
  keepers: optional(z.record(z.string(), z.string()), {
    description: "Arbitrary values that trigger a rotation: a change of any value creates a new key.",
    notDecisive: "the plan contains the rotation itself",
    replaces: true,
    default: {},
  }),
};

const outputs = {
  key: output(z.string(), {
    description: "The secret of the key. Empty if the key was imported.",
    secret: true,
    choice: z.uuidv4({ error: "must be a UUID of version 4" }),
  }),
  previousKey: output(z.string(), {
    description: "The secret of the replaced key while that key keeps working. Otherwise empty.",
    secret: true,
    mutable: hasReplaced,
  }),
  previous: output(z.array(previous), {
    description: "The replaced keys that still work.",
    mutable: hasReplaced,
  }),
  expiresAt: output(z.string(), {
    description:
      "The time when the key expires. Empty if the key never expires. If the key was revoked out of band while replaced keys still work, this is the time when a refresh detected the revocation.",
  }),
  createdBy: output(userId, { description: "The ID of the user who created the key." }),
  createdAt: output(dateTime, { description: "The time when the key was created." }),
};

type Inputs = InputValues<typeof inputs>;
type KeyState = Readonly<State<typeof inputs, typeof outputs>>;
type Previous = z.output<typeof previous>;

const ids = new IdForm("ApiKey", {
  tenant: EXAMPLE_TENANT,
  name: "staging",
});

export const definition = defineResource({
  name: "ApiKey",
  description:
    "An API key of a namespace. The service does not return the secret of an existing key. A key can be rotated before it expires, and the old key can keep working for a number of days.",
  id: ids,
  layers: [guarded],
  object: { kind: "apiKey", id: (id, { name }) => String(name ?? ids.split(id).name) },
  idNote: "the name at creation",
  inputs,
  outputs,
  identity: {
    fields: ["tenant", "name"],
    ofInputs: ({ tenant, name }) =>
      name === undefined ? [] : [{ key: `api key ${tenant ?? ""} ${name}`, property: "name" }],
    // The id of a key contains its name at creation. It does not identify the key, because a key and its replacement
    // can have been created with the same name.
    ofId: () => [],
  },

  rotation: {
    objectKeys: (state) => [claimOfKey(state)],
    // The replaced keys in the state must keep working until their overlap ends. The engine deletes the old resource of
    // such a key, possibly in a later run. This claim prevents the deletion from revoking the key. In a preview,
    // `previous` can be a placeholder string or null instead of a list.
    keeps: ({ previous }) => (Array.isArray(previous) ? previous.map(claimOfKey) : []),
    withReplaced(state, replaced) {
      const kept = state.previous.map(claimOfKey);
      const ended = carriedOn(replaced, new Date()).filter((key) => !kept.includes(claimOfKey(key)));
      return { ...state, previous: [...state.previous, ...ended] };
    },
  },

  async list(connection, tenant) {
    const opened = await connection.tenant(tenant);
    const settings = (key: ApiKey) => ({ validDays: daysOf(key) });
    return (await opened.listing(apiKeys).all()).map((key) =>
      listedObject(
        `${tenant}/${key.name}`,
        key.name,
        { ...toState(tenant, key, settings(key)), ...UNKNOWN_SECRETS },
        { declaredBy: key.declaredBy, facts: { updatedAt: key.updatedAt } },
      ),
    );
  },

  rules: ({ validDays, rotateBefore = 0 }) =>
    validDays > 0 && rotateBefore >= validDays
      ? [
          {
            code: "invalid_input",
            field: ["rotateBefore"],
            detail: said`must be less than ${{ field: "validDays" }} (${validDays})`,
          },
        ]
      : [],

  stale(state, { rotateBefore = 0 }, now) {
    const ends = state.expiresAt === "" ? undefined : Date.parse(state.expiresAt) - rotateBefore * DAY;
    if (ends !== undefined && ends <= now.getTime()) {
      return [{ field: "rotateBefore", replaces: true, reason: rotationReason(state, rotateBefore, now) }];
    }
    const ended = state.previous.find((old) => hasOverlapEnded(old, now));
    if (!ended) return [];
    const reason = said`the overlap of the replaced key "${ended.name}" ended ${agoText(ended.until, now)}: the run revokes the replaced key`;
    return [{ field: "overlap", replaces: false, reason }];
  },

  async create(connection, inputs, origin) {
    refuseUnseen(inputs, origin);
    const opened = await connection.tenant(inputs.tenant);
    const name = inputs.name ?? generatedName(origin.name);
    const old = origin.replaced as Existing<KeyState> | undefined;
    const replaced = old?.state;
    const id = `${opened.tenant}/${name}`;
    const olds = replaced ? [replaced, ...replaced.previous] : [];
    if (old) {
      await revokeUnanswered(connection, opened, old);
      await refuseTaken(opened, name, olds);
    }
    const created = await createKey(
      connection,
      opened,
      { ...inputs, name: old ? unansweredName(old) : name },
      await secretOf(opened, connection, origin),
    );
    const kept = overlapOf(replaced, overlapDays(inputs));
    const isKept = replaced && kept.some((key) => claimOfKey(key) === claimOfKey(replaced));
    const previousKey = (kept.length > 0 && (isKept ? replaced.key : replaced?.previousKey)) || "";
    const secrets = { key: created.id, previousKey, previous: kept };
    const state = { ...toState(opened.tenant, created, inputs), ...secrets };
    if (!replaced) return { id, state };
    try {
      await giveUpName(opened, olds, name, generatedName(name));
      await rename(opened, created, name);
      return { id, state: { ...state, name } };
    } catch (error) {
      throw new UnfinishedError(id, state, clearer(error, name));
    }
  },

  async read(connection, id, state) {
    const { tenant, name } = ids.split(id);
    const opened = await connection.tenant(tenant);
    const { createdAt, createdBy } = state;
    const found = createdAt
      ? await listed(opened, { createdAt, createdBy, name: state.name ?? name })
      : await opened.listing(apiKeys).find(name);
    if (!found) return endedAlone(connection, id, state);
    const validDays = state.validDays ?? daysOf(found);
    const settings = { ...state, validDays };
    const secrets = {
      key: state.key ?? "",
      previousKey: state.previousKey ?? "",
      previous: state.previous ?? [],
    };
    return { id, state: { ...toState(tenant, found, settings), ...secrets }, live: liveFacts(found) };
  },

  async update(connection, id, state, inputs) {
    const { tenant } = ids.split(id);
    const opened = await connection.tenant(tenant);
    const { name = state.name, role = state.role } = inputs;
    // After an incomplete rotation, the previous key may still have this name.
    if (name !== state.name) await giveUpName(opened, state.previous, name, generatedName(name));
    if (name !== state.name || role !== state.role) {
      const body = { ...(name !== state.name && { name }), ...(role !== state.role && { role }) };
      await opened.client.updateApiKey({ params: { key: await nameOf(opened, state) }, body });
    }
    const previous = await revokeEnded(connection, state.previous);
    const previousKey = previous.length > 0 ? state.previousKey : "";
    const settings = settingsOf({ ...inputs, overlap: inputs.overlap ?? state.overlap });
    return { ...state, ...settings, name, role, previous, previousKey };
  },

  async delete(connection, id, state, isClaimed) {
    const { tenant } = ids.split(id);
    for (const key of [...state.previous, { ...state, tenant }]) {
      if (!isClaimed(claimOfKey(key))) await revoke(connection, key);
    }
    await revokeUnanswered(connection, await connection.tenant(tenant), { id, state }, isClaimed);
  },
});

/** Values for an existing key that replace the secrets, which the service does not return. */
const UNKNOWN_SECRETS = { key: "", previousKey: "", previous: [] };

/**
 * Returns the temporary name of the successor of a key. The successor has this name until the service confirms the
 * create. If the response is lost, no state contains the successor, but a later run can find it by this name.
 */
function unansweredName({ id, state: { createdAt } }: Existing<KeyState>): string {
  const digest = createHash("sha256")
    .update(`${id} ${apiKeyIdentity({ createdAt })}`)
    .digest("hex");
  return `rotation-${digest}`.slice(0, MAX_NAME);
}

/**
 * Revokes the unanswered successor of a key: an earlier run created this successor, but the response to the create was
 * lost. Does nothing if no such successor exists.
 */
async function revokeUnanswered(
  connection: Connection,
  { tenant, listing }: TenantClient,
  replaced: Existing<KeyState>,
  isClaimed?: IsClaimed,
): Promise<void> {
  const name = unansweredName(replaced);
  // This check avoids an extra request: for a name that the list does not contain, `find` requests the list again.
  const keys = listing(apiKeys);
  const isListed = (await keys.all()).some((key) => key.name === name);
  const found = isListed ? await keys.find(name) : undefined;
  if (found && !isClaimed?.(claimOfKey(found))) await revoke(connection, { ...found, tenant });
}

/**
 * Rejects a name that another key already has.
 * @throws Error if a key that is not in `olds` has the name
 */
async function refuseTaken(opened: TenantClient, name: string, olds: readonly HeldKey[]): Promise<void> {
  const today = await Promise.all(olds.map((key) => listed(opened, key)));
  const isOwn = today.some((key) => key?.name === name);
  if (!isOwn && (await opened.listing(apiKeys).find(name))) throw nameTaken(name);
}

/**
 * Returns the number of days for which a replaced key keeps working. The inputs of its successor determine this number.
 */
export const overlapDays = ({ overlap, rotateBefore = 0 }: Partial<Inputs>): number =>
  overlap ?? (rotateBefore > 0 ? 1 : 0);

/**
 * Returns the reason why a run replaces a key: the key expires soon, has expired, or was revoked during an overlap.
 */
function rotationReason(
  { expiresAt, createdAt, validDays, previous }: KeyState,
  rotateBefore: number,
  now: Date,
): Message {
  if (!hasEnded(expiresAt, now)) {
    return said`expires ${inText(expiresAt, now)}, ${{ field: "rotateBefore" }} ${rotateBefore}: the run replaces the key`;
  }
  const lived = (Date.parse(expiresAt) - Date.parse(createdAt)) / DAY;
  const isRevoked = previous.length > 0 && (validDays === -1 || lived < validDays - 1);
  return isRevoked
    ? said`was revoked or deleted outside the program: the run replaces the key`
    : said`expired ${agoText(expiresAt, now)}: the run replaces the key`;
}

const claimOfKey = (key: KeyIdentity) => `api key made ${apiKeyIdentity(key)}`;

/**
 * Rejects a replacement with an overlap if the engine did not pass the replaced key. The provider then cannot identify
 * the key that must keep working.
 * @throws Error if the inputs have an overlap and the replaced key was not passed
 */
function refuseUnseen(inputs: Inputs, { unseen }: Origin): void {
  const { tenant } = inputs;
  if (!unseen || overlapDays(inputs) === 0) return;
  // A key without an explicit namespace counts as a key in the same namespace as the other key.
  if (tenant !== undefined && unseen.tenant !== undefined && tenant !== unseen.tenant) return;
  throw new ResourceError("ApiKey", {
    code: "unsupported_change",
    field: ["overlap"],
    detail: said`Cannot keep the old key working: the engine replaces this key without passing it to the provider`,
    remedy: said`change keepers, which also replaces the key, or use gatehouse rotate`,
  });
}

/** Returns a unique name that begins with the resource's name. */
function generatedName(resource: string): string {
  const suffix = `-${randomBytes(4).toString("hex")}`;
  const readable = resource.replaceAll(/[^A-Za-z0-9._-]+/g, "-").slice(0, MAX_NAME - suffix.length);
  return `${readable}${suffix}`;
}

/**
 * Returns the secret of a new key: the secret that the program chose, or a random secret. The provider determines the
 * secret before it sends the create. If the response is lost, the provider recognizes the created key by this secret.
 * @throws Error if another key already has the secret that the program chose
 */
async function secretOf(
  { tenant }: TenantClient,
  connection: Connection,
  { chosen: { key } }: Origin,
): Promise<string> {
  if (typeof key !== "string") return randomUUID();
  if (!(await connection.opens(key))) return key;
  throw new ResourceError("ApiKey", {
    code: "already_exists",
    field: ["key"],
    detail: said`An existing key in the namespace ${tenant} or in another namespace already has this secret`,
    remedy: said`choose a new secret; if an interrupted run created that key, import the key by its name or revoke it`,
  });
}

/**
 * Creates a key. The idempotency key is random, so that it is valid only for this call. A reproducible idempotency key
 * could be the same as in an earlier run of a stack with the same name. The service would then return the key from that
 * run, which another user may already use.
 */
async function createKey(
  connection: Connection,
  opened: TenantClient,
  { name, validDays, role }: Inputs & { readonly name: string },
  key: string,
) {
  const idempotencyKey = randomUUID();
  const body = { name, expiresAt: validDays, key, ...(role && { role }) };
  const create = async () =>
    withIdentity(opened, await opened.client.createApiKey({ body }, { idempotencyKey }));
  try {
    return await create();
  } catch (error) {
    if (!(error instanceof RequestError) || error.outcome === "none") throw clearer(error, name);
  }
  try {
    return await create();
  } catch (error) {
    // A service without idempotency keys rejects the second request if the first request created the key.
    if (!(error instanceof ConflictError) || !(await connection.opens(key))) throw clearer(error, name);
    await opened.client.deleteApiKey({ params: { key: name } });
    return create();
  }
}

type CreatedKey = Awaited<ReturnType<TenantClient["client"]["createApiKey"]>>;

/**
 * Returns the new key with its creator and creation time. If the response to the create does not contain them, reads
 * the key from the list.
 */
async function withIdentity(
  { listing }: TenantClient,
  created: CreatedKey,
): Promise<ApiKey & { readonly id: string }> {
  const createdBy = created.createdBy ?? created.userId;
  if (createdBy !== undefined && created.createdAt) return { ...created, createdBy };
  listing(apiKeys).forget();
  const listed = await listing(apiKeys).find(created.name);
  if (!listed)
    throw new ResourceError("ApiKey", {
      code: "incomplete_response",
      detail: said`The service created "${created.name}" but does not list the key`,
      remedy: said`revoke the key manually`,
    });
  return { ...listed, id: created.id };
}

const clearer = (error: unknown, name: string): unknown =>
  error instanceof ConflictError ? nameTaken(name, error) : error;

const nameTaken = (name: string, cause?: unknown): ResourceError =>
  new ResourceError(
    "ApiKey",
    {
      code: "already_exists",
      field: ["name"],
      detail: said`The namespace already has an API key "${name}", and the secret of an existing key cannot be read`,
      remedy: said`delete that key, choose another name, or omit the name`,
    },
    { cause },
  );

/**
 * Returns the keys that keep working after a replacement, in the form that states use. They are the keys that the
 * replaced key had replaced, followed by the replaced key itself. The replaced key is omitted if it has expired. Empty
 * if the overlap is 0.
 */
function overlapOf(replaced: KeyState | undefined, overlap: number): Previous[] {
  if (!replaced || overlap === 0) return [];
  const { expiresAt, previous } = replaced;
  const now = new Date();
  if (hasEnded(expiresAt, now)) return previous;
  const until = now.getTime() + overlap * DAY;
  return carriedOn(replaced, new Date(expiresAt ? Math.min(until, Date.parse(expiresAt)) : until));
}

/**
 * Returns the keys that a replaced key had replaced, followed by the replaced key itself.
 * @param until the end of the overlap; the next run after this time revokes the replaced key
 */
function carriedOn({ previous, tenant, name, createdAt, createdBy }: KeyState, until: Date): Previous[] {
  return [...previous, { tenant, name, createdAt, createdBy, until: until.toISOString() }];
}

const hasOverlapEnded = (old: Previous, now: Date) => hasEnded(old.until, now);

/**
 * Returns the state of a key that no longer exists, although keys that it had replaced still work. Returns undefined if
 * none of these keys works. The state must keep the key, because otherwise no run would revoke the replaced keys. The
 * key therefore counts as expired, and the next run creates a new key.
 */
async function endedAlone(connection: Connection, id: string, state: Readonly<Partial<KeyState>>) {
  const find = async (old: Previous) => listed(await connection.tenant(old.tenant), old);
  const left = await Promise.all((state.previous ?? []).map(find));
  if (left.every((old) => old === undefined)) return undefined;
  const now = new Date().toISOString();
  const hasExpired = state.expiresAt && state.expiresAt <= now;
  return { id, state: { ...(state as KeyState), expiresAt: hasExpired ? state.expiresAt : now } };
}

/** Revokes the keys whose overlap has ended, and returns all other keys. */
async function revokeEnded(connection: Connection, keys: readonly Previous[]): Promise<Previous[]> {
  const now = new Date();
  for (const old of keys) if (hasOverlapEnded(old, now)) await revoke(connection, old);
  return keys.filter((old) => !hasOverlapEnded(old, now));
}

const settingsOf = (inputs: Partial<Inputs>) => ({
  rotateBefore: inputs.rotateBefore ?? 0,
  overlap: overlapDays(inputs),
  keepers: inputs.keepers ?? {},
});

function daysOf(key: ApiKey): ValidDays {
  if (key.expiresIn === -1) return -1;
  const lived = (key.expiresIn * 1000 - Date.parse(key.createdAt)) / DAY;
  return API_KEY_DAYS.filter((days) => days > 0).reduce((best, days) =>
    Math.abs(days - lived) < Math.abs(best - lived) ? days : best,
  );
}

function toState(tenant: string, key: ApiKey, settings: Partial<Inputs> & { readonly validDays: ValidDays }) {
  return {
    tenant,
    name: key.name,
    role: key.role,
    validDays: settings.validDays,
    ...settingsOf(settings),
    expiresAt: key.expiresIn === -1 ? "" : new Date(key.expiresIn * 1000).toISOString(),
    createdBy: key.createdBy,
    createdAt: key.createdAt,
  };
}
