import { z } from "zod";
import type { ResponseHeaders } from "./answer.ts";
import type {
  CallOptions,
  CallResult,
  Client,
  Dialect,
  Difference,
  DifferenceName,
  ItemOf,
  OperationId,
  Performed,
  RequestOf,
  ResponseOf,
  ServerVersion,
} from "./clientTypes.ts";
import { defineOperation, paging, publicKeys, sorting, TOTAL_COUNT, tag, uid } from "./contract/index.ts";
import {
  ConfigurationError,
  ConflictError,
  isNotFound,
  NotFoundError,
  RequestError,
  ServerError,
  ValidationError,
} from "./errors.ts";
import { Filter } from "./filter.ts";
import { iteratePages } from "./pages.ts";

// The contract describes version 0.19. This module contains all differences between the contract and later versions.

const request = { auth: ["jwt", "apikey"], scope: "namespace", part: "Devices and agents" } as const;
const ofTag = { ...request, path: "/api/tags/{tag}", params: { tag } } as const;
const onDevice = { ...request, path: "/api/devices/{uid}/tags/{tag}", params: { uid, tag } } as const;

/**
 * The tag operations of server versions that store tags as objects (the difference "tags as objects"). The ids are the
 * ids of the contract's operations, because errors and reports contain these ids. Only `createTag` has no operation in
 * the contract.
 */
const tags = {
  list: defineOperation({
    ...request,
    id: "getTags",
    summary: "List the tags of the namespace",
    method: "GET",
    path: "/api/tags",
    query: { ...paging, ...sorting },
    success: { headers: [TOTAL_COUNT], body: z.array(z.string()) },
  }),
  create: defineOperation({
    ...request,
    id: "createTag",
    summary: "Create a tag",
    method: "POST",
    path: "/api/tags",
    body: z.object({ name: tag }),
  }),
  rename: defineOperation({
    ...ofTag,
    id: "renameTag",
    summary: "Rename a tag",
    method: "PATCH",
    body: z.object({ name: tag }),
  }),
  push: defineOperation({
    ...onDevice,
    id: "createDeviceTag",
    summary: "Add an existing tag to a device",
    method: "POST",
    // The request has no effect if the device already has the tag.
    repeatable: true,
  }),
  pull: defineOperation({
    ...onDevice,
    id: "deleteDeviceTag",
    summary: "Remove a tag from a device",
    method: "DELETE",
  }),
};

const EMPTY = { status: 200, headers: {}, body: undefined } as const;

/**
 * Creates a tag that no object uses. Only server versions with the difference "tags as objects" support unused tags.
 * @throws ConflictError if the tag exists
 */
export async function createTag(client: Client, name: string, options?: CallOptions): Promise<void> {
  await client.request(tags.create, { body: { name } }, options);
}

/** Adds a tag to a device, and creates the tag if it does not exist. */
async function push(client: Client, device: string, name: string, options: CallOptions): Promise<void> {
  const params = { uid: device, tag: name };
  try {
    await client.request(tags.push, { params }, options);
  } catch (error) {
    if (!isNotFound(error)) throw error;
    await createTag(client, name, options).catch((failure: unknown) => {
      // Another request created the tag in the meantime.
      if (!(failure instanceof ConflictError)) throw failure;
    });
    await client.request(tags.push, { params }, options);
  }
}

/** Removes a tag from a device. If the device does not have the tag, the server answers 500 or 404. */
async function pull(client: Client, device: string, name: string, options: CallOptions): Promise<void> {
  try {
    await client.request(tags.pull, { params: { uid: device, tag: name } }, options);
  } catch (error) {
    if (!(error instanceof ServerError || isNotFound(error))) throw error;
    const { tags: left } = await client.getDevice({ params: { uid: device } }, options);
    if (left.includes(name)) throw error;
  }
}

/** Performs the tag operations on server versions with the difference "tags as objects". */
const tagCalls: Performed = {
  async getTags(client, _parts, options) {
    const names: string[] = [];
    let answer: ResponseHeaders = {};
    const pages = iteratePages(tags.list, {}, async (query) => {
      const { headers, body } = await client.request(tags.list, { query }, options);
      answer = headers;
      return { headers, items: body };
    });
    for await (const { items } of pages) names.push(...items);
    return { ...EMPTY, headers: answer, body: names };
  },

  async renameTag(client, { params, body }, options) {
    await client.request(tags.rename, { params, body: { name: body.tag } }, options);
    // The server confirms a change that affects only letter case, but does not change the tag.
    const sameLetters = params.tag !== body.tag && params.tag.toLowerCase() === body.tag.toLowerCase();
    if (!sameLetters || (await client.getTags()).includes(body.tag)) return EMPTY;
    throw new ValidationError("the server does not change the letter case of a tag", {
      operation: "renameTag",
      method: "PATCH",
      path: `/api/tags/${params.tag}`,
      outcome: "none",
      attempts: 1,
      remedy: "use another name, or the current name",
    });
  },

  async createDeviceTag(client, { params, body }, options) {
    await push(client, params.uid, body.tag, options);
    return EMPTY;
  },

  // These versions have no request that replaces all tags. If one of the requests fails, the caller can repeat the call
  // to complete the change.
  async updateDeviceTags(client, { params, body }, options) {
    const { tags: before } = await client.getDevice({ params }, options);
    for (const name of body.tags) if (!before.includes(name)) await push(client, params.uid, name, options);
    for (const name of before) if (!body.tags.includes(name)) await pull(client, params.uid, name, options);
    return EMPTY;
  },

  // Read the device first, because the server answers 500 if the device does not have the tag.
  async deleteDeviceTag(client, { params }, options) {
    const { tags: before } = await client.getDevice({ params: { uid: params.uid } }, options);
    if (before.includes(params.tag)) await pull(client, params.uid, params.tag, options);
    return EMPTY;
  },
};

/** Lists devices for a server that cannot filter them. The result is one page with all devices that match. */
async function filterDevices(
  client: Client,
  { query }: RequestOf<"getDevices">,
  options: CallOptions,
): Promise<CallResult<"getDevices">> {
  const { filter, page = 1, ...others } = query ?? {};
  const ordered = { ...others, ...(others.sortBy === "uid" && { sortBy: "created_at" }) };
  if (!(filter instanceof Filter)) {
    const plain = { ...ordered, page, ...(filter !== undefined && { filter }) };
    return client.call("getDevices", { query: plain }, options);
  }
  const all = { sortBy: "created_at", ...ordered, perPage: 100 };
  const body: ResponseOf<"getDevices"> = [];
  if (page > 1) return { ...EMPTY, body };
  for await (const device of client.iterate("getDevices", { query: all }, options)) {
    if (filter.matches(device)) body.push(device);
  }
  return { ...EMPTY, headers: { "x-total-count": String(body.length) }, body };
}

/**
 * Updates a public key for a server that cannot change the tags of a key. If the filter changes to or from tags, the key
 * is deleted first, so that a failure never leaves a key that matches too many devices.
 */
async function recreateKey(
  client: Client,
  { params, body }: RequestOf<"updatePublicKey">,
  options: CallOptions,
): Promise<CallResult<"updatePublicKey">> {
  const tagsOf = ({ tags = [] }: { readonly tags?: readonly string[] | undefined }) =>
    [...tags].sort().join();
  let found: ItemOf<"getPublicKeys"> | undefined;
  for await (const key of client.iterate("getPublicKeys", {}, options)) {
    if (key.fingerprint !== params.fingerprint) continue;
    found = key;
    break;
  }
  const notFound = (serverMessage: string) =>
    new NotFoundError("not found (404)", {
      operation: "updatePublicKey",
      method: "PUT",
      path: "/api/sshkeys/public-keys",
      status: 404,
      outcome: "none",
      attempts: 0,
      serverMessage,
    });
  // Fail if the list omits the key, because the contract's request could remove the key's filter.
  if (!found) throw notFound("the list of public keys does not contain the key");
  if (tagsOf(found.filter) === tagsOf(body.filter)) {
    return client.request(publicKeys.updatePublicKey, { params, body }, options);
  }
  const known = await client.getTags({}, options);
  const missing = (body.filter.tags ?? []).filter((name) => !known.includes(name));
  if (missing.length > 0) throw notFound(`the namespace has no tag ${missing.join(", ")}`);
  await client.deletePublicKey({ params }, options).catch((error: unknown) => {
    // The key is already deleted: the response to the first attempt was lost.
    if (!isNotFound(error)) throw error;
  });
  return client.call("createPublicKey", { body: { ...body, data: found.data } }, options);
}

/** Returns a copy of a filter with one field renamed. */
const renamed = (filter: Filter, from: string, to: string): Filter =>
  new Filter(
    filter.clauses.map((clause) =>
      clause.map((item) =>
        item.params.name === from ? { ...item, params: { ...item.params, name: to } } : item,
      ),
    ),
  );

/** All known differences, oldest first. */
const DIFFERENCES: readonly Difference[] = [
  {
    name: "device counts",
    since: "0.20",
    text: "A namespace has a separate number of devices for each status.",
  },
  {
    name: "tags as objects",
    since: "0.21",
    text: "Tags are objects. A tag exists until it is deleted, and a device can have more than three tags. To replace the tags of a device, the client sends one request for each added or removed tag.",
    performs: tagCalls,
  },
  {
    name: "no device filter",
    since: "0.22",
    until: "0.24",
    text: "Lists of devices cannot be filtered. The client reads all devices and filters them.",
    performs: { getDevices: filterDevices },
  },
  {
    name: "fixed tags of keys",
    since: "0.22",
    until: "0.24",
    text: "An update of a public key does not change its tags. An update from a pattern to tags removes the filter, so that the key matches every device. The client therefore deletes the key and creates it again.",
    performs: { updatePublicKey: recreateKey },
  },
  {
    name: "filter by tag name",
    since: "0.21",
    text: "Lists of devices are filtered by `tags.name` instead of `tags`.",
    changes: {
      getDevices: (parts, options) => {
        const { filter } = parts.query ?? {};
        if (!(filter instanceof Filter)) return { parts, options };
        return {
          parts: { query: { ...parts.query, filter: renamed(filter, "tags", "tags.name") } },
          options,
        };
      },
    },
  },
  {
    name: "invitations",
    since: "0.27",
    text: "Community instances invite new members instead of adding them. The server needs the header X-Forwarded-Host, which the client sends.",
    changes: {
      inviteMember: (parts, options, url) => ({
        parts,
        options: { ...options, headers: { "x-forwarded-host": new URL(url).host, ...options.headers } },
      }),
    },
  },
  {
    name: "device order",
    since: "0.21",
    text: "Lists of devices cannot be sorted by UID. The client sorts them by the time of enrollment.",
    changes: {
      getDevices: (parts, options) =>
        parts.query?.sortBy === "uid"
          ? { parts: { query: { ...parts.query, sortBy: "created_at" } }, options }
          : { parts, options },
    },
  },
  {
    name: "access modes",
    since: "0.27",
    text: "A namespace authorizes logins by public keys and firewall rules (mode legacy) or by access policies (mode identity).",
  },
  {
    name: "one namespace",
    since: "0.27",
    text: "A community instance has a single namespace, which cannot be created or deleted.",
  },
  {
    name: "API keys read less",
    since: "0.25",
    text: "API keys can list neither namespaces nor API keys.",
  },
  {
    name: "errors without a message",
    since: "0.19",
    until: "0.26",
    text: "Most errors have no message.",
  },
];

/**
 * Returns true if a call may need a different request on some server versions. A request for a list of devices is the
 * same for all versions if it uses the default order, or a filter in string form.
 */
export function differs<Id extends OperationId>(id: Id, parts: RequestOf<Id>): boolean {
  if (id === "getDevices") {
    const { query } = parts as RequestOf<"getDevices">;
    return query?.sortBy === "uid" || query?.filter instanceof Filter;
  }
  return DIFFERENCES.some(({ performs, changes }) => performs?.[id] ?? changes?.[id]);
}

/** Returns true if a dialect contains the difference with the name `wanted`. */
export const hasDifference = ({ differences }: Dialect, wanted: DifferenceName): boolean =>
  differences.some(({ name }) => name === wanted);

const numberOf = (version: string): number => {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major * 1000 + minor;
};

/** The dialects, oldest first. */
export const DIALECTS: readonly Dialect[] = ["0.19", "0.20", "0.21", "0.22", "0.25", "0.27"].map((name) => ({
  name,
  differences: DIFFERENCES.filter(
    ({ since, until = name }) => numberOf(since) <= numberOf(name) && numberOf(name) <= numberOf(until),
  ),
}));

/** Returns the dialect of a version such as `0.23` or `0.27.0-rc.6`. */
function dialectOf(version: string): Dialect {
  const known = DIALECTS.filter(({ name }) => numberOf(name) <= numberOf(version));
  return (known.at(-1) ?? DIALECTS[0]) as Dialect;
}

/** The access modes of a namespace; `unknown` for a mode of later versions. */
export type SshAccessMode = "legacy" | "identity" | "unknown";

/**
 * Returns the access mode of a namespace. In the mode `legacy`, public keys and firewall rules authorize logins. In the
 * mode `identity`, access policies authorize logins. Returns undefined for servers older than 0.27, which support only
 * public keys and firewall rules.
 */
export function sshAccessModeOf({ settings }: { readonly settings?: object }): SshAccessMode | undefined {
  const mode: unknown = (settings as { ssh_access_mode?: unknown } | undefined)?.ssh_access_mode;
  return mode === undefined || mode === "legacy" || mode === "identity" ? mode : "unknown";
}

/** Returns false if a namespace cannot change to the mode `legacy`, because it was created in the mode `identity`. */
export const isLegacyModeAllowed = ({ settings }: { readonly settings?: object }): boolean =>
  (settings as { ssh_legacy_allowed?: unknown } | undefined)?.ssh_legacy_allowed !== false;

/**
 * Returns the number of accepted devices of a namespace. Versions before 0.20 send the number in a different field.
 * Returns undefined if the server sends no number.
 */
export function acceptedDevicesOf(namespace: {
  readonly deviceCount?: number;
  readonly devicesCount?: number;
}): number | undefined {
  const { devices_accepted_count: count } = namespace as { devices_accepted_count?: number };
  return namespace.deviceCount ?? namespace.devicesCount ?? count;
}

const VERSION = /^v?(\d{1,4}\.\d{1,4}(?:\.\d{1,4})?(?:-[0-9A-Za-z.-]{1,40})?)/;

/**
 * Returns the version of a server and its dialect. If the server reports no version number, as servers built from
 * source do, the client determines the dialect from the server's responses to other requests.
 * @throws RequestError if the server cannot be reached
 */
export async function serverVersionOf(client: Client): Promise<ServerVersion> {
  const reported = await client.getInfo().catch((error: unknown) => {
    // If a proxy does not forward this request, the client determines the dialect from the responses to other requests.
    if (isMissing(error)) return undefined;
    throw error;
  });
  const [, version] = VERSION.exec(reported?.version ?? "") ?? [];
  if (version === undefined) return { version, dialect: await dialectByAnswers(client), isNewer: false };
  return versionOf(version);
}

/**
 * Returns a version such as `0.27.0-rc.6` with its dialect.
 * @throws ConfigurationError if the string is not a version
 */
export function versionOf(text: string): ServerVersion {
  const [, version] = VERSION.exec(text) ?? [];
  if (version === undefined) {
    throw new ConfigurationError("is not a version", {
      field: ["serverVersion"],
      remedy: "use a version such as 0.27",
    });
  }
  const newest = DIALECTS.at(-1) as Dialect;
  return { version, dialect: dialectOf(version), isNewer: numberOf(version) > numberOf(newest.name) };
}

async function dialectByAnswers(client: Client): Promise<Dialect> {
  const { tenant } = await client.identity();
  if (tenant === undefined) {
    throw new ConfigurationError("The server reports no version", {
      field: ["url"],
      remedy: "configure the proxy to forward /info, or create the namespace first",
    });
  }
  const namespace = await client.getNamespace({ params: { tenant } });
  if (sshAccessModeOf(namespace) !== undefined) return DIALECTS.at(-1) as Dialect;
  try {
    await client.request(oldTags, { params: { tenant } });
    // The requests of 0.22 work with all versions from 0.21 to 0.26.
    return dialectOf("0.22");
  } catch (error) {
    if (isMissing(error)) return dialectOf("0.19");
    throw error;
  }
}

/** The operation that lists tags at a path that only versions with the difference "tags as objects" support. */
const oldTags = defineOperation({
  ...request,
  id: "getTags",
  summary: "List the tags of the namespace",
  method: "GET",
  path: "/api/namespaces/{tenant}/tags",
  params: { tenant: z.string() },
});

const isMissing = (error: unknown): boolean =>
  error instanceof RequestError && [403, 404, 405].includes(error.status ?? 0);
