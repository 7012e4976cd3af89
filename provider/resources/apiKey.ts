import { createHash, randomBytes, randomUUID } from "node:crypto";
import { ConflictError, RequestError } from "@gatehouse-access/sdk";
import { apiKeys, dateTime, role as roleSchema, tenantId, userId } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import { ResourceError, said } from "../resourceError.ts";
import type { Connection, TenantClient } from "../service/connection.ts";
import { type ApiKey, apiKeyIdentity, type KeyIdentity } from "../service/listings.ts";
import {
  defineResource,
  type Existing,
  IdForm,
  type InputValues,
  type IsClaimed,
  listed as listedObject,
  type Origin,
  optional,
  output,
  required,
  type State,
  tenantInput,
  UnfinishedError,
} from "./definition.ts";
import { giveUpName, type HeldKey, listed, nameOf, rename, revoke } from "./heldKeys.ts";

const { API_KEY_DAYS } = apiKeys;
type ValidDays = (typeof API_KEY_DAYS)[number];

const DAY = 86_400_000;
const MAX_NAME = 20;

const days = z.int().min(0);

const previous = z.object({
  tenant: tenantId.describe("Its namespace."),
  name: z.string().describe("Its name when it was replaced."),
  createdAt: dateTime.describe("When it was made."),
  createdBy: userId.describe("Who made it."),
  until: dateTime.describe("The first run after this time revokes it."),
});

const hasReplaced = ({ previous }: Readonly<Record<string, unknown>>): boolean =>
  Array.isArray(previous) && previous.length > 0;

const inputs = {
  tenant: tenantInput,
  name: optional(apiKeys.createApiKey.body.shape.name, {
    description:
      "Name, unique in the namespace: 3 to 20 characters without white space. Left out: generated.",
  }),
  role: optional(roleSchema, {
    description: "What the key may do; at most what its maker may. Left out: what its maker may.",
  }),
  validDays: required(z.literal(API_KEY_DAYS), {
    description: "Days until it expires: 30, 60, 90 or 365; -1: never.",
    replaces: true,
  }),
  rotateBefore: optional(days.max(364), {
    description: "The first run in this many days before it expires replaces it by a new one.",
    default: 0,
  }),
  overlap: optional(days.max(90), {
    description:
      "Days for which a replaced key goes on working; the first run after them revokes it. 0: it ends with the run that replaces it.",
    default: 0,
  }),
  keepers: optional(z.record(z.string(), z.string()), {
    description: "Any values; a change of one makes a new key.",
    replaces: true,
    default: {},
  }),
};

const outputs = {
  key: output(z.string(), {
    description: "The secret; empty when the key was imported.",
    secret: true,
    choice: z.uuidv4({ error: "must be a UUID of version 4" }),
  }),
  previousKey: output(z.string(), {
    description: "The secret of the key that this one replaced, while that one goes on working; else empty.",
    secret: true,
    mutable: hasReplaced,
  }),
  previous: output(z.array(previous), {
    description: "The keys that this one replaced, while they go on working.",
    mutable: hasReplaced,
  }),
  expiresAt: output(z.string(), {
    description:
      "When it expires; empty: never. Of a key that somebody revoked while keys that it replaced go on working: when a refresh found that out.",
  }),
  createdBy: output(userId, { description: "Id of the user who made it." }),
  createdAt: output(dateTime, { description: "When it was made." }),
};

type Inputs = InputValues<typeof inputs>;
type KeyState = Readonly<State<typeof inputs, typeof outputs>>;
type Previous = z.output<typeof previous>;

const ids = new IdForm("ApiKey", "tenant", "name");

export const apiKey = defineResource({
  name: "ApiKey",
  description:
    "An API key of a namespace. Its secret is known only here; it can be rotated before it expires, the old one going on for a while.",
  id: ids,
  idNote: "the name at creation",
  inputs,
  outputs,
  identity: {
    fields: ["tenant", "name"],
    ofInputs: ({ tenant, name }) =>
      name === undefined ? [] : [{ key: `api key ${tenant ?? ""} ${name}`, property: "name" }],
    // A key and the one that replaces it may have had the same name.
    ofId: () => [],
  },

  // The engine deletes a replaced key itself, perhaps in a later run.
  keeps: (state) => state.previous.map(claimOfKey),

  objectKeys: (state) => [claimOfKey(state)],

  async list(connection, tenant) {
    const { apiKeys } = await connection.tenant(tenant);
    const settings = (key: ApiKey) => ({ validDays: daysOf(key) });
    return (await apiKeys.all()).map((key) =>
      listedObject(
        `${tenant}/${key.name}`,
        key.name,
        () => ({ ...toState(tenant, key, settings(key)), ...UNKNOWN_SECRETS }),
        key.declaredBy,
      ),
    );
  },

  withReplaced(state, replaced) {
    const kept = state.previous.map(claimOfKey);
    const ended = carriedOn(replaced, new Date()).filter((key) => !kept.includes(claimOfKey(key)));
    return { ...state, previous: [...state.previous, ...ended] };
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
    if (ends !== undefined && ends <= now.getTime()) return [{ field: "rotateBefore", replaces: true }];
    return state.previous.some((old) => hasEnded(old, now)) ? [{ field: "overlap", replaces: false }] : [];
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
    const made = await makeKey(
      connection,
      opened,
      { ...inputs, name: old ? unansweredName(old) : name },
      await secretOf(opened, connection, origin),
    );
    const kept = overlapOf(replaced, inputs.overlap ?? 0);
    const previousKey = kept.length > 0 ? (replaced?.key ?? "") : "";
    const secrets = { key: made.id, previousKey, previous: kept };
    const state = { ...toState(opened.tenant, made, inputs), ...secrets };
    if (!replaced) return { id, state };
    try {
      await giveUpName(opened, olds, name, generatedName(name));
      await rename(opened, made, name);
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
      : await opened.apiKeys.find(name);
    if (!found) return endedAlone(connection, id, state);
    const validDays = state.validDays ?? daysOf(found);
    const settings = { ...state, validDays };
    const secrets = {
      key: state.key ?? "",
      previousKey: state.previousKey ?? "",
      previous: state.previous ?? [],
    };
    return { id, state: { ...toState(tenant, found, settings), ...secrets } };
  },

  async update(connection, id, state, inputs) {
    const { tenant } = ids.split(id);
    const opened = await connection.tenant(tenant);
    const { name = state.name, role = state.role } = inputs;
    // A rotation that was not completed may have left the name to the key before.
    if (name !== state.name) await giveUpName(opened, state.previous, name, generatedName(name));
    if (name !== state.name || role !== state.role) {
      const body = { ...(name !== state.name && { name }), ...(role !== state.role && { role }) };
      await opened.client.updateApiKey({ params: { key: await nameOf(opened, state) }, body });
    }
    const previous = await revokeEnded(connection, state.previous);
    const previousKey = previous.length > 0 ? state.previousKey : "";
    return { ...state, ...settingsOf(inputs), name, role, previous, previousKey };
  },

  async delete(connection, id, state, isClaimed) {
    const { tenant } = ids.split(id);
    for (const key of [...state.previous, { ...state, tenant }]) {
      if (!isClaimed(claimOfKey(key))) await revoke(connection, key);
    }
    await revokeUnanswered(connection, await connection.tenant(tenant), { id, state }, isClaimed);
  },
});

/** What only the maker of a key knows. */
const UNKNOWN_SECRETS = { key: "", previousKey: "", previous: [] };

/**
 * The name of a key that is to replace this one, until the service has answered: by it, a later run finds the key whose
 * answer was lost, although no state has it.
 */
function unansweredName({ id, state: { createdAt } }: Existing<KeyState>): string {
  const digest = createHash("sha256")
    .update(`${id} ${apiKeyIdentity({ createdAt })}`)
    .digest("hex");
  return `rotation-${digest}`.slice(0, MAX_NAME);
}

/** Revokes the key that was to replace this one, and whose answer was lost, if there is one. */
async function revokeUnanswered(
  connection: Connection,
  { tenant, apiKeys }: TenantClient,
  replaced: Existing<KeyState>,
  isClaimed?: IsClaimed,
): Promise<void> {
  const name = unansweredName(replaced);
  // A name that is not in the list would be looked for once more.
  const isListed = (await apiKeys.all()).some((key) => key.name === name);
  const found = isListed ? await apiKeys.find(name) : undefined;
  if (found && !isClaimed?.(claimOfKey(found))) await revoke(connection, { ...found, tenant });
}

/** @throws Error when a key other than these has the name, so that the new one could not have it */
async function refuseTaken(opened: TenantClient, name: string, olds: readonly HeldKey[]): Promise<void> {
  const today = await Promise.all(olds.map((key) => listed(opened, key)));
  const isOwn = today.some((key) => key?.name === name);
  if (!isOwn && (await opened.apiKeys.find(name))) throw nameTaken(name);
}

const claimOfKey = (key: KeyIdentity) => `api key made ${apiKeyIdentity(key)}`;

/** @throws Error when the replaced key is to go on working, but the engine does not show which one it is */
function refuseUnseen({ tenant, overlap = 0 }: Inputs, { unseen }: Origin): void {
  if (!unseen || overlap === 0) return;
  // A namespace that is left out is the same one.
  if (tenant !== undefined && unseen.tenant !== undefined && tenant !== unseen.tenant) return;
  throw new ResourceError("ApiKey", {
    code: "unsupported_change",
    field: ["overlap"],
    detail: said`the engine replaces this key without showing it to its provider, so that it could not go on working`,
    remedy: said`change keepers, which replaces it as well, or use gatehouse up --replace`,
  });
}

/** A name that no other key has, and that begins with the resource's name. */
function generatedName(resource: string): string {
  const suffix = `-${randomBytes(4).toString("hex")}`;
  const readable = resource.replaceAll(/[^A-Za-z0-9._-]+/g, "-").slice(0, MAX_NAME - suffix.length);
  return `${readable}${suffix}`;
}

/**
 * The secret of a new key: the program's, or one that is chosen here, so that a key whose answer was lost can be recognized.
 * @throws Error when another key has the program's
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
    detail: said`a key of the namespace ${tenant} or another one has this secret already: choose a new one`,
    remedy: said`where a run was interrupted after it had made that key, import the key by its name, or revoke it`,
  });
}

/**
 * Makes a key. The idempotency key is
 * for this try alone: somebody with a stack of the same name may use the key that an earlier run made.
 */
async function makeKey(
  connection: Connection,
  opened: TenantClient,
  { name, validDays, role }: Inputs & { readonly name: string },
  key: string,
) {
  const idempotencyKey = randomUUID();
  const body = { name, expiresAt: validDays, key, ...(role && { role }) };
  const make = async () => whole(opened, await opened.client.createApiKey({ body }, { idempotencyKey }));
  try {
    return await make();
  } catch (error) {
    if (!(error instanceof RequestError) || error.outcome === "none") throw clearer(error, name);
  }
  try {
    return await make();
  } catch (error) {
    // A service that knows no idempotency keys refuses the second: then the first one was made.
    if (!(error instanceof ConflictError) || !(await connection.opens(key))) throw clearer(error, name);
    await opened.client.deleteApiKey({ params: { key: name } });
    return make();
  }
}

type CreatedKey = Awaited<ReturnType<TenantClient["client"]["createApiKey"]>>;

/** The new key with its identity: not every service says in this answer who made it, and when. */
async function whole({ apiKeys }: TenantClient, made: CreatedKey): Promise<ApiKey & { readonly id: string }> {
  const createdBy = made.createdBy ?? made.userId;
  if (createdBy !== undefined && made.createdAt) return { ...made, createdBy };
  apiKeys.forget();
  const listed = await apiKeys.find(made.name);
  if (!listed)
    throw new ResourceError("ApiKey", {
      code: "incomplete_answer",
      detail: said`the service made "${made.name}" but does not list it`,
      remedy: said`revoke it by hand`,
    });
  return { ...listed, id: made.id };
}

const clearer = (error: unknown, name: string): unknown =>
  error instanceof ConflictError ? nameTaken(name, error) : error;

const nameTaken = (name: string, cause?: unknown): ResourceError =>
  new ResourceError(
    "ApiKey",
    {
      code: "already_exists",
      field: ["name"],
      detail: said`the namespace has an API key "${name}" already, and its secret cannot be read`,
      remedy: said`remove it, choose another name, or leave the name out`,
    },
    { cause },
  );

/** The replaced key, and those that it had replaced: the state must name every key that goes on working. */
function overlapOf(replaced: KeyState | undefined, overlap: number): Previous[] {
  if (!replaced || overlap === 0) return [];
  return carriedOn(replaced, new Date(Date.now() + overlap * DAY));
}

/** The keys that a replaced one had replaced, and itself, which is to be revoked after a time. */
function carriedOn({ previous, tenant, name, createdAt, createdBy }: KeyState, until: Date): Previous[] {
  return [...previous, { tenant, name, createdAt, createdBy, until: until.toISOString() }];
}

const hasEnded = (old: Previous, now: Date) => Date.parse(old.until) <= now.getTime();

/**
 * The state of a key that somebody revoked, while keys that it replaced go on working; undefined where none of them
 * does. If the key went out of the state, nobody would ever revoke those. So it stays as one that has expired, and the
 * next up makes a new one.
 */
async function endedAlone(connection: Connection, id: string, state: Readonly<Partial<KeyState>>) {
  const find = async (old: Previous) => listed(await connection.tenant(old.tenant), old);
  const left = await Promise.all((state.previous ?? []).map(find));
  if (left.every((old) => old === undefined)) return undefined;
  const now = new Date().toISOString();
  const hasExpired = state.expiresAt && state.expiresAt <= now;
  return { id, state: { ...(state as KeyState), expiresAt: hasExpired ? state.expiresAt : now } };
}

/** Revokes the keys whose time is over, and gives the others. */
async function revokeEnded(connection: Connection, keys: readonly Previous[]): Promise<Previous[]> {
  const now = new Date();
  for (const old of keys) if (hasEnded(old, now)) await revoke(connection, old);
  return keys.filter((old) => !hasEnded(old, now));
}

const settingsOf = ({ rotateBefore = 0, overlap = 0, keepers = {} }: Partial<Inputs>) => ({
  rotateBefore,
  overlap,
  keepers,
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
