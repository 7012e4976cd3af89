import { createHash } from "node:crypto";
import {
  ConflictError,
  createInstallKey,
  iteratePages,
  listInstallKeys,
  type RequestParts,
  revealInstallKey,
  updateInstallKey,
} from "@gatehouse-access/sdk";
import { apiKeys, tag } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import { defineResource } from "../../model/defineResource.ts";
import { type Existing, type Failure, listed } from "../../model/definition.ts";
import { type InputValues, optional, output, required, type State, tenantInput } from "../../model/fields.ts";
import { EXAMPLE_TENANT, IdForm } from "../../model/idForm.ts";
import { UnfinishedError } from "../../model/unfinishedError.ts";
import { daysOf, daysOnWire, daysSchema, hasEnded, NEVER, stateTime } from "../../model/validity.ts";
import { canonicalInputs } from "../../model/values.ts";
import { ResourceError, type ResourceFault, said } from "../../resourceError.ts";
import { completeList, doubtOf, requireAbsent } from "../../service/absence.ts";
import type { TenantClient } from "../../service/connection.ts";
import { isUnclear, keyOfName, type ListingSource, PAGE_SIZE } from "../../service/listings.ts";
import { hasAccessModes, type ItemOf } from "../../service/wholeLists.ts";

const MODES = ["automatic", "manual", "allowlist", "webhook"] as const;
const WEBHOOK_TIMEOUT = 5;
const WEBHOOK_CALLBACK_TTL = 3600;
const EPHEMERAL_TIMEOUT = 10;
const HINT_LENGTH = 8;
/** The names of the system keys, which the service creates in each namespace. */
const SYSTEM_KEYS = ["legacy", "pairing"];

const mac = z
  .string()
  .regex(/^[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}$/, "must be a MAC address such as 02:00:00:00:00:01");

const inputs = {
  tenant: tenantInput,
  name: required(apiKeys.createApiKey.body.shape.name, {
    description:
      "The name of the key. Must be unique in the namespace and contain 3 to 20 characters without white space. The name of a deleted key stays taken.",
    notDecisive: "the name is only displayed",
  }),
  mode: optional(z.enum(MODES), {
    description:
      "The handling of devices that enroll with the key. Must be `automatic` (accept), `manual` (leave pending), `allowlist` (accept the addresses in `allowedMacs`, reject other devices) or `webhook` (ask `webhookUrl`).",
    default: "automatic",
  }),
  allowedMacs: optional(z.array(mac), {
    description: "The MAC addresses of the accepted devices. Required with the mode `allowlist`.",
    default: [],
    canonical: (addresses) => [...new Set(addresses.map((address) => address.toLowerCase()))].sort(),
  }),
  webhookUrl: optional(z.url({ protocol: /^https?$/ }), {
    description: "The URL that decides about devices. Required with the mode `webhook`.",
    default: "",
  }),
  webhookSecret: optional(z.string(), {
    description:
      "The secret that signs requests to `webhookUrl`. Required with the mode `webhook`. The service does not return the secret, so a change outside the program is not detected.",
    default: "",
    secret: true,
    notDecisive: "the secret signs requests of the service, and does not decide about devices",
  }),
  webhookTimeout: optional(z.int().min(1).max(15), {
    description: "The number of seconds to wait for a response of `webhookUrl`. Must be from 1 to 15.",
    default: WEBHOOK_TIMEOUT,
  }),
  webhookCallbackTtl: optional(z.int().min(1).max(86_400), {
    description:
      "The number of seconds in which the receiver of a webhook can decide later. Must be from 1 to 86400.",
    default: WEBHOOK_CALLBACK_TTL,
  }),
  validDays: optional(daysSchema, {
    description:
      "The number of days until the key expires. Must be from 1 to 36500. If `-1`, the key never expires. A change counts from the day of the change. After the expiration, the next run makes the key valid for this number of days again.",
    default: NEVER,
  }),
  usageLimit: optional(z.int().min(0), {
    description:
      "The maximum number of devices that can enroll with the key. If `0`, the number is not limited. Must not be less than the number of enrolled devices.",
    default: 0,
  }),
  ephemeral: optional(z.boolean(), {
    description: "Whether the service removes a device of the key when the device is offline for some time.",
    default: false,
  }),
  ephemeralTimeout: optional(z.int().min(1).max(10), {
    description:
      "The number of minutes after which the service removes an offline device of an `ephemeral` key. Must be from 1 to 10.",
    default: EPHEMERAL_TIMEOUT,
  }),
  tags: optional(z.array(tag), {
    description:
      "The tags of devices that enroll with the key. The service creates a missing tag at the enrollment.",
    default: [],
  }),
  disabled: optional(z.boolean(), {
    description: "Whether devices cannot enroll with the key.",
    default: false,
    isSetAfterCreate: true,
  }),
};

const outputs = {
  key: output(z.string(), { description: "The key, with which devices enroll.", secret: true }),
  keyHint: output(z.string(), { description: "The first characters of the key." }),
  installKeyId: output(z.string(), {
    description: "The ID of the key: the SHA-256 digest of the key, in hexadecimal form.",
  }),
  expiresAt: output(z.string(), {
    description: "The time when the key expires. Empty if the key never expires.",
    mutable: () => true,
  }),
  usedTimes: output(z.int(), {
    description: "The number of devices that enrolled with the key.",
    volatile: true,
  }),
  createdAt: output(z.string(), { description: "The time when the key was created." }),
};

type Inputs = InputValues<typeof inputs>;
type KeyState = State<typeof inputs, typeof outputs>;
/**
 * The values that a new state keeps from the previous state or the program. The service does not return the secrets and
 * `validDays`. The previous `expiresAt` shows whether the validity has changed.
 */
type Kept = Partial<Pick<KeyState, "key" | "webhookSecret" | "validDays" | "expiresAt">>;

/** An install key, as the service lists it. */
type InstallKey = ItemOf<typeof listInstallKeys>;

/** The type of the install keys that users create. Each namespace also has two install keys of other types. */
const USER_KEY = "user";

/**
 * The install keys that users created in a namespace, by id and by name. The list also contains revoked keys, because
 * their names are still in use. API keys cannot read the list.
 */
const installKeys: ListingSource<InstallKey> = (client) => {
  async function* all() {
    if (!(await hasAccessModes(client))) {
      yield { items: [], total: 0 };
      return;
    }
    const sorted = { sortBy: "created_at", orderBy: "asc", perPage: PAGE_SIZE };
    yield* iteratePages(listInstallKeys, sorted, async (query) => {
      const { headers, body } = await client.request(listInstallKeys, { query });
      return { headers, items: body };
    });
  }
  const keysOf = ({ id, name }: InstallKey) => [id, keyOfName(name)];
  const kind = "InstallKey";
  async function* pages() {
    for await (const { items, total } of all()) {
      const own = items.filter(({ type }) => type === USER_KEY);
      yield { items: own, total, skipped: items.length - own.length };
    }
  }
  return {
    kind,
    keysOf,
    pages,
    look: async (key) =>
      (await completeList(kind, pages, ({ id }) => id)).find((item) => keysOf(item).includes(key)),
  };
};

/**
 * Returns the install key with this name from a listing. Returns undefined if no user has created a key with the name.
 */
const installKeyNamed = ({ listing }: TenantClient, name: string): Promise<InstallKey | undefined> =>
  listing(installKeys).find(keyOfName(name));

// The id contains the digest of the key, which never changes. A name is unsuitable as an id: it can change, and a
// revoked key keeps its name.
const ids = new IdForm("InstallKey", {
  tenant: EXAMPLE_TENANT,
  installKeyId: "05c5f511c6f0fd667bd9732ddb67f89763b6ae398980aa487a60b6fa36a9aa60",
});

export const definition = defineResource({
  name: "InstallKey",
  description:
    "An install key, with which devices enroll in a namespace. Requires ShellHub 0.27 or later (not `gatehouse-server`), and a user's credential: API keys cannot manage install keys. The service cannot delete an install key, so a deletion revokes the key, and its name stays taken. An update also changes the name.",
  id: ids,
  inputs,
  outputs,
  needs: (_inputs, state) => (state ? [] : [{ capability: "install keys" }]),
  identity: {
    fields: ["tenant", "name"],
    ofInputs: ({ tenant, name }) => [{ key: `install key ${tenant ?? ""} ${name}`, property: "name" }],
  },

  rules({ mode, allowedMacs = [], webhookUrl, webhookSecret, ...others }) {
    const { webhookTimeout, webhookCallbackTtl, ephemeral, ephemeralTimeout } = others;
    const isWebhook = mode === "webhook";
    return [
      ...paired("allowedMacs", allowedMacs.length > 0, mode === "allowlist", ["mode", "allowlist"]),
      ...paired("webhookUrl", !!webhookUrl, isWebhook, ["mode", "webhook"]),
      ...paired("webhookSecret", !!webhookSecret, isWebhook, ["mode", "webhook"]),
      ...usable("webhookTimeout", webhookTimeout !== WEBHOOK_TIMEOUT, isWebhook, ["mode", "webhook"]),
      ...usable("webhookCallbackTtl", webhookCallbackTtl !== WEBHOOK_CALLBACK_TTL, isWebhook, [
        "mode",
        "webhook",
      ]),
      ...usable("ephemeralTimeout", ephemeralTimeout !== EPHEMERAL_TIMEOUT, ephemeral === true, [
        "ephemeral",
        true,
      ]),
    ];
  },

  stale: ({ expiresAt }, _inputs, now) =>
    hasEnded(expiresAt, now) ? [{ field: "validDays", replaces: false }] : [],

  async find(connection, { tenant, name }) {
    const opened = await connection.tenant(tenant);
    const found = await installKeyNamed(opened, name);
    return found && !found.revoked ? existing(opened, found, {}) : undefined;
  },

  async list(connection, tenant) {
    const { listing } = await connection.tenant(tenant);
    return (await listing(installKeys).all())
      .filter(({ revoked }) => !revoked)
      .map((key) =>
        listed(`${tenant}/${key.id}`, key.name, toState(tenant, key, {}), {
          ...(key.mode === "webhook" && { reason: NO_SECRET }),
        }),
      );
  },

  async create(connection, values) {
    const opened = await connection.tenant(values.tenant);
    const { client } = opened;
    const body = { ...bodyOf(values), expiresIn: daysOnWire(values.validDays ?? NEVER) };
    const { body: response } = await unlessTaken(opened, values.name, () =>
      client.request(createInstallKey, { body }),
    );
    let key = created(opened.tenant, values, response);
    try {
      const found = await listedAgain(opened, values.name);
      key = existing(opened, found, { ...values, key: response.key });
      return values.disabled ? { ...key, state: await change(opened, key, values) } : key;
    } catch (error) {
      throw new UnfinishedError(key.id, key.state, error);
    }
  },

  async read(connection, id, state) {
    const { tenant, installKeyId } = ids.split(id);
    const opened = await connection.tenant(tenant);
    const found = await opened.listing(installKeys).find(installKeyId);
    if (!found || found.revoked) return undefined;
    // An import requests the secret key from the service. States without secrets, such as Terraform's states, have no
    // property `key`.
    const isImport = state.installKeyId === undefined;
    const kept = isImport || state.key === "" ? { ...state, key: await keyOf(opened, found) } : state;
    return existing(opened, found, kept);
  },

  async update(connection, id, state, values) {
    const opened = await connection.tenant(ids.split(id).tenant);
    return change(opened, { id, state }, values);
  },

  async delete(connection, id) {
    const { tenant, installKeyId } = ids.split(id);
    const opened = await connection.tenant(tenant);
    const found = await opened.listing(installKeys).find(installKeyId);
    if (!found || found.revoked) return;
    const { client, listing } = opened;
    const doubt = await doubtOf(client, (witnessed) =>
      write({ ...opened, client: witnessed }, found, { revoked: true }),
    );
    await requireAbsent("InstallKey", found.name, doubt, async () => {
      const after = await listing(installKeys).find(installKeyId);
      return after !== undefined && !after.revoked;
    });
  },
});

type Condition = readonly ["mode", (typeof MODES)[number]] | readonly ["ephemeral", true];

/** Returns an error if an input is set, but the condition under which it has an effect is not met. */
function usable(field: string, isSet: boolean, isMet: boolean, [name, value]: Condition): Failure[] {
  if (!isSet || isMet) return [];
  const detail = said`has no effect without ${{ field: name, value }}`;
  return [{ code: "invalid_input", field: [field], detail, remedy: said`remove it` }];
}

/**
 * Returns an error in two cases: the input is set, but its condition is not met, or the condition is met, but the input
 * is not set.
 */
function paired(field: string, isSet: boolean, isMet: boolean, condition: Condition): Failure[] {
  if (isSet || !isMet) return usable(field, isSet, isMet, condition);
  const [name, value] = condition;
  return [
    { code: "missing_input", field: [field], detail: said`is required with ${{ field: name, value }}` },
  ];
}

/**
 * Returns the request body of a create or an update, without the expiry. Omits settings that have no effect in the
 * declared mode.
 */
function bodyOf(values: Inputs) {
  const { name, mode = "automatic", allowedMacs, webhookUrl, webhookSecret } = values;
  const { webhookTimeout, webhookCallbackTtl, usageLimit, ephemeral = false, tags } = values;
  return {
    name,
    mode,
    ...(mode === "allowlist" && { allowedMacs }),
    ...(mode === "webhook" && { webhookUrl, webhookSecret, webhookTimeout, webhookCallbackTtl }),
    usageLimit,
    ephemeral,
    ...(ephemeral && { ephemeralTimeout: values.ephemeralTimeout }),
    tags,
  };
}

/** Updates a key and returns its new state. */
async function change(opened: TenantClient, { id, state }: Existing<KeyState>, values: Inputs) {
  const listing = opened.listing(installKeys);
  const { installKeyId } = ids.split(id);
  const found = usableKey(await listing.find(installKeyId), state.name);
  const { validDays = NEVER, disabled = false, name } = values;
  const isExpired = hasEnded(stateTime(found.expiresAt), new Date());
  const isSame = validDays === state.validDays && !isExpired;
  const expiry = isSame ? {} : { expiresIn: daysOnWire(validDays) ?? null };
  await unlessTaken(opened, name, () => write(opened, found, { ...bodyOf(values), disabled, ...expiry }));
  const changed = usableKey(await listing.find(installKeyId), name);
  const key = state.key === "" ? await keyOf(opened, changed) : state.key;
  const { expiresAt } = changed;
  return toState(opened.tenant, changed, { ...state, ...values, key, expiresAt: stateTime(expiresAt) });
}

/**
 * Returns the install key if it can be changed.
 * @throws ResourceError if the key is missing or revoked
 */
function usableKey(found: InstallKey | undefined, name: string): InstallKey {
  if (found && !found.revoked) return found;
  throw new ResourceError("InstallKey", {
    code: "object_deleted",
    detail: said`"${name}" no longer exists: it was revoked after the state was written`,
    remedy: said`${{ phrase: "refresh" }}, and choose another name`,
  });
}

/**
 * Sends an update of an install key. If the response was lost, lists the keys again, because the update may have
 * renamed the key. Then sends the update once more, unless the key is missing or revoked.
 */
async function write(
  { client, listing }: TenantClient,
  { id, name }: InstallKey,
  body: RequestParts["body"],
): Promise<void> {
  const send = (current: string) => client.request(updateInstallKey, { params: { name: current }, body });
  try {
    await send(name);
  } catch (error) {
    if (!isUnclear(error)) throw error;
    listing(installKeys).forget();
    const found = await listing(installKeys).find(id);
    if (found && !found.revoked) await send(found.name);
  }
  listing(installKeys).forget();
}

/** Requests the list of keys again, and returns the key that was just created with this name. */
async function listedAgain(opened: TenantClient, name: string): Promise<InstallKey> {
  opened.listing(installKeys).forget();
  const found = await installKeyNamed(opened, name);
  if (found) return found;
  throw new ResourceError("InstallKey", {
    code: "incomplete_response",
    detail: said`The service wrote "${name}" but does not list the key`,
    remedy: said`revoke the key manually`,
  });
}

/**
 * Sends a create or an update that gives this name to a key, and returns the response.
 * @throws ResourceError if another key has the name, and no create can adopt that key
 */
async function unlessTaken<T>(opened: TenantClient, name: string, send: () => Promise<T>): Promise<T> {
  try {
    return await send();
  } catch (cause) {
    if (!(cause instanceof ConflictError)) throw cause;
    opened.listing(installKeys).forget();
    const found = await installKeyNamed(opened, name);
    if (found ? !found.revoked : !SYSTEM_KEYS.includes(name)) throw cause;
    const owner = found ? said`a revoked install key` : said`a system key of the service`;
    const fault: ResourceFault = {
      code: "already_exists",
      field: ["name"],
      detail: said`The name ${name} is taken by ${owner}`,
      remedy: said`use another name`,
    };
    throw new ResourceError("InstallKey", fault, { cause });
  }
}

/** Requests the key itself. */
async function keyOf({ client }: TenantClient, { name }: InstallKey): Promise<string> {
  return (await client.request(revealInstallKey, { params: { name } })).body.key;
}

/**
 * Returns a new key before the service has listed it, so that the state contains the secret key even if a later step of
 * the create fails. The new key is enabled, because a create cannot disable it.
 */
function created(
  tenant: string,
  values: Inputs,
  { key, createdAt }: { readonly key: string; readonly createdAt: string },
): Existing<KeyState> {
  const installKeyId = createHash("sha256").update(key).digest("hex");
  const state = {
    ...(canonicalInputs(inputs, values) as KeyState),
    tenant,
    disabled: false,
    key,
    keyHint: key.slice(0, HINT_LENGTH),
    installKeyId,
    expiresAt: "",
    usedTimes: 0,
    createdAt: stateTime(createdAt),
  };
  return { id: `${tenant}/${installKeyId}`, state };
}

function existing({ tenant }: TenantClient, found: InstallKey, kept: Kept) {
  return { id: `${tenant}/${found.id}`, state: toState(tenant, found, kept) };
}

const NO_SECRET =
  'the service does not return webhookSecret; declare the key with its secret and adopt: "overwrite"';

function toState(tenant: string, found: InstallKey, kept: Kept): KeyState {
  const { mode, ephemeral } = found;
  const isWebhook = mode === "webhook";
  const expiresAt = stateTime(found.expiresAt);
  // A changed validity starts on the day of the change. The number of days then cannot be computed from the creation
  // time.
  const isSame = kept.validDays !== undefined && (kept.expiresAt ?? expiresAt) === expiresAt;
  return {
    tenant,
    name: found.name,
    // A newer server may have additional modes, which no program can declare.
    mode: mode as KeyState["mode"],
    // The service keeps the settings of other modes although they have no effect.
    allowedMacs: mode === "allowlist" ? found.allowedMacs : [],
    webhookUrl: isWebhook ? found.webhookUrl : "",
    webhookSecret: isWebhook ? (kept.webhookSecret ?? "") : "",
    webhookTimeout: (isWebhook && found.webhookTimeout) || WEBHOOK_TIMEOUT,
    webhookCallbackTtl: (isWebhook && found.webhookCallbackTtl) || WEBHOOK_CALLBACK_TTL,
    validDays:
      isSame && kept.validDays !== undefined ? kept.validDays : daysOf(found.createdAt, found.expiresAt),
    usageLimit: found.usageLimit,
    ephemeral,
    ephemeralTimeout: (ephemeral && found.ephemeralTimeout) || EPHEMERAL_TIMEOUT,
    tags: found.tags,
    disabled: found.disabled,
    key: kept.key ?? "",
    keyHint: found.keyHint,
    installKeyId: found.id,
    expiresAt,
    usedTimes: found.usedTimes,
    createdAt: stateTime(found.createdAt),
  };
}
