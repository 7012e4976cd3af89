import { where } from "@gatehouse-access/sdk";
import {
  email,
  fingerprint,
  isPrivateKey,
  parseSshPublicKey,
  publicKeys,
  refusedKeyType,
  sha256Fingerprint,
  sshPublicKeyLine,
} from "@gatehouse-access/sdk/contract";
import type { AccessKey } from "@gatehouse-access/sdk/policy";
import { z } from "zod";
import type { ResourceValues } from "../engine/index.ts";
import { defineResource } from "../model/defineResource.ts";
import { listed } from "../model/definition.ts";
import { filterInput, filterState, needsOfTags, patternOn } from "../model/deviceFilter.ts";
import type { Draft } from "../model/draft.ts";
import { endState, endToSend, expiring, expiryInputs, expiryOutputs } from "../model/expiry.ts";
import { optional, output, type ReferenceCheck, required, type State, tenantInput } from "../model/fields.ts";
import { EXAMPLE_TENANT, IdForm } from "../model/idForm.ts";
import { type Kind, listedBy, policyEnd } from "../model/kind.ts";
import type { DecidingFacts } from "../model/namespaceObjects.ts";
import { outputOf, UnpredictableError } from "../model/plannedStep.ts";
import { type Place, stored } from "../model/stored.ts";
import { idWithin } from "../model/values.ts";
import { ResourceError, type ResourceFault, said } from "../resourceError.ts";
import { completeList } from "../service/absence.ts";
import { lackNotice } from "../service/capabilities.ts";
import type { Connection } from "../service/connection.ts";
import { isUnreadable, type ListingSource, PAGE_SIZE, type PublicKey } from "../service/listings.ts";
import type { Values } from "../values.ts";
import { hasEmail, definition as members, usersIn } from "./member/resource.ts";
import { userIdOf } from "./member/users.ts";

const wire = publicKeys.createPublicKey.body.shape;

/** A public key, as one line in OpenSSH format. */
export const sshKeySchema = z.string().superRefine((text, context) => {
  try {
    parseSshPublicKey(text);
  } catch (error) {
    const isPath = /^(~|\.{0,2}\/|\S+\.pub$)/.test(text);
    const reason = error instanceof Error ? error.message : String(error);
    const message = isPath ? "must be the content of a public key file, not the path of the file" : reason;
    context.addIssue({ code: "custom", message, params: { isPrivateKey: isPrivateKey(text) } });
  }
});

/** Returns a public key without its comment and without superfluous white space. */
export const canonicalSshKey = (line: string): string => sshPublicKeyLine(parseSshPublicKey(line));

/** The public keys of a namespace, by fingerprint. The service has no request for a single key. */
export const keys: ListingSource<PublicKey> = (client) => {
  const kind = "PublicKey";
  return {
    kind,
    keysOf: (key) => [key.fingerprint],
    pages: () => client.pages("getPublicKeys", { query: { perPage: PAGE_SIZE } }),
    // Some servers ignore the filter in the request and return every key, so the whole response is searched.
    async look(fingerprint) {
      const query = { filter: where("fingerprint").eq(fingerprint), perPage: PAGE_SIZE };
      const keys = await completeList(
        kind,
        () => client.pages("getPublicKeys", { query }),
        (key) => key.fingerprint,
      );
      return keys.find((key) => key.fingerprint === fingerprint);
    },
  };
};

const inputs = {
  tenant: tenantInput,
  name: required(wire.name, {
    description: "The display name of the key. Several keys can have the same name.",
    notDecisive: "the name is only displayed",
  }),
  data: required(sshKeySchema, {
    description:
      "The public key, as one line in OpenSSH format. The comment and extra white space are ignored.",
    replaces: true,
    canonical: canonicalSshKey,
  }),
  username: required(patternOn(wire.username, "login"), {
    description:
      "An RE2 pattern that matches the login name. The pattern is not anchored: use `^root$` to allow only `root`.",
  }),
  filter: filterInput,
  owner: optional(email, {
    description:
      "The e-mail address of the user to whom the key belongs. The key admits logins only while this user is a member of the namespace. Use the output `email` of the `Member`, so that the member is created first.",
    default: "",
    canonical: (address) => address.toLowerCase(),
    references: checkOwner,
  }),
  ...expiryInputs("the key", "the key admits no login"),
};

const outputs = {
  fingerprint: output(fingerprint, {
    description: "The MD5 fingerprint of the key, as 16 hexadecimal pairs separated by colons.",
  }),
  createdAt: output(z.string(), {
    description: "The time when the key was registered. Empty until the service has returned it.",
    // Servers of version 0.19 omit the creation time from the response to a create.
    volatile: true,
  }),
  ownerId: output(z.string(), {
    description:
      "The ID of the user to whom the key belongs. It stays the same if the user changes the e-mail address of the account. Empty if the service does not know the owner.",
    lacked: ({ owner, ownerId }) => (owner && !ownerId ? lackNotice("key owners") : undefined),
    mutable: (state, inputs) => (state.owner ?? "") !== (inputs.owner ?? ""),
  }),
  ...expiryOutputs,
};

const definition = defineResource({
  ...stored({
    name: "PublicKey",
    id: new IdForm("PublicKey", {
      tenant: EXAMPLE_TENANT,
      fingerprint: "73:d4:40:0a:6b:59:d2:1e:c0:7f:15:6d:35:e0:c4:91",
    }),
    inputs,
    outputs,
    source: keys,
    keyOf: ({ fingerprint }: PublicKey) => fingerprint,
    nameOf: ({ name }) => name,
    lookupKey: ({ data }) => parseSshPublicKey(data).fingerprint,
    derived: async (key, known, { connection, tenant }) =>
      derivedValues(key, await ownerOf(connection, tenant, key, known)),
    body: bodyOf,
    create: (client, body, options) => client.createPublicKey({ body }, options),
    update: (client, fingerprint, body) => client.updatePublicKey({ params: { fingerprint }, body }),
    remove: (client, fingerprint) => client.deletePublicKey({ params: { fingerprint } }),
  }),
  description: "An SSH public key, with the logins and devices that it gives access to.",
  layers: [expiring],
  object: { kind: "publicKey" },
  tags: { needs: "filter" },
  actsIn: "legacy",
  needs: ({ filter }) => needsOfTags(filter.tags, ["filter", "tags"]),
  identity: {
    fields: ["tenant", "data"],
    ofInputs: ({ tenant, data }) => [
      { key: `key ${tenant ?? ""} ${parseSshPublicKey(data).fingerprint}`, property: "data" },
    ],
  },

  async list(connection, tenant) {
    const opened = await connection.tenant(tenant);
    const all = await opened.listing(keys).all();
    const users = all.some(({ owner }) => owner) ? await knownUsers(connection, tenant) : [];
    const emails = new Map(users.map(({ id, email }) => [id, email.toLowerCase()]));
    return all.map((key) => {
      const { owner: ownerId = "", declaredBy, ownerEmail } = key;
      const owner = { owner: (ownerId && emails.get(ownerId)) ?? "", ownerId };
      const { name, username, fingerprint } = key;
      const state = { tenant, name, username, fingerprint, ...derivedValues(key, owner) };
      return listed(`${tenant}/${fingerprint}`, name, state, { declaredBy, facts: { ownerEmail } });
    });
  },
});

type User = NonNullable<Awaited<ReturnType<typeof usersIn>>>[number];

/** The owner of a key, in the form that states use. */
type Owner = Readonly<Record<"owner" | "ownerId", string>>;

type KeyState = Readonly<State<typeof inputs, typeof outputs>>;

/** Returns an error if the declared owner is not a member of the namespace. */
async function checkOwner(
  connection: Connection,
  value: unknown,
  before: unknown,
  { tenant = "", isClaimed }: Parameters<ReferenceCheck>[3],
): Promise<ResourceFault | undefined> {
  const [owner, same] = [value, before].map((address) => String(address ?? "").toLowerCase());
  // If the program declares a `Member` with this address, the user becomes a member before the run creates the key.
  const isAdded = [tenant, ""].some((place) => isClaimed(`member ${place} ${owner}`));
  if (!owner || owner === same || isAdded) return undefined;
  const opened = await connection.tenant(tenant || undefined);
  return (await ownerIdOf(connection, opened.tenant, owner)) ? undefined : noMember(opened.tenant, owner);
}

/**
 * Returns the owner of a key, with the e-mail address. If the state contains the same owner id, returns the address in
 * the state, even if the user has changed the address of the account.
 */
async function ownerOf(
  connection: Connection,
  tenant: string,
  { owner: ownerId = "" }: PublicKey,
  known: Partial<Owner> = {},
): Promise<Owner> {
  if (ownerId === "") return { owner: "", ownerId };
  if (known.ownerId === ownerId) return { owner: known.owner ?? "", ownerId };
  const user = (await knownUsers(connection, tenant)).find(({ id }) => id === ownerId);
  return { owner: user?.email.toLowerCase() ?? "", ownerId };
}

/**
 * Returns the users of a namespace. Returns an empty list if the users cannot be read. A key then has the id of its
 * owner, but not the address.
 */
async function knownUsers(connection: Connection, tenant: string): Promise<readonly User[]> {
  try {
    return (await usersIn(connection, tenant)) ?? [];
  } catch (error) {
    if (isUnreadable(error)) return [];
    throw error;
  }
}

async function ownerIdOf(connection: Connection, tenant: string, owner: string): Promise<string | undefined> {
  const find = async () => (await usersIn(connection, tenant))?.find((user) => hasEmail(user, owner))?.id;
  const found = await find();
  if (found !== undefined) return found;
  // The cached members may be outdated, because the responses to concurrent invitations may have been cached out of
  // order.
  connection.namespaces.forget();
  return find();
}

async function requireOwner(connection: Connection, tenant: string, owner: string): Promise<string> {
  const id = await ownerIdOf(connection, tenant, owner);
  if (id === undefined) throw new ResourceError("PublicKey", noMember(tenant, owner));
  return id;
}

const noMember = (tenant: string, owner: string): ResourceFault => ({
  code: "invalid_input",
  field: ["owner"],
  value: owner,
  detail: said`The address ${owner} is not the e-mail address of a member of the namespace ${tenant}`,
  remedy: said`use the current address of a member, or declare a Member and use its output ${{ field: "email" }}`,
});

const toBase64 = (text: string) => Buffer.from(text).toString("base64");

/**
 * Returns the request body of a create or an update. The body of a create contains the key in base64. The owner is sent
 * as a user id.
 */
async function bodyOf(
  { owner, ...plain }: Readonly<Partial<KeyState>>,
  state: KeyState | undefined,
  { connection, tenant }: Place,
): Promise<Values> {
  const body = { ...plain, expiresAt: endToSend(plain, state) };
  // An unchanged owner is not sent: the service then keeps the owner. It would reject an owner who has left the
  // namespace.
  const isKept = state && owner === (state.owner ?? "") && (owner === "" || Boolean(state.ownerId));
  if (isKept) return body;
  const ownerId = owner ? await requireOwner(connection, tenant, owner) : undefined;
  if (state) return { ...body, owner: ownerId ?? null };
  return { ...body, data: toBase64(plain.data ?? ""), ...(ownerId !== undefined && { owner: ownerId }) };
}

/** Returns a key as one line in OpenSSH format. Decodes the line, because the service returns it in base64. */
export const lineOf = ({ data }: Pick<PublicKey, "data">): string =>
  Buffer.from(data, "base64").toString("utf8");

/** Returns the SHA256 fingerprint of a line in OpenSSH format, or undefined if the line contains no valid key. */
export function sshFingerprintOf(line: string): string | undefined {
  try {
    return sha256Fingerprint(parseSshPublicKey(line));
  } catch {
    // Older servers may have stored keys that this version rejects.
    return undefined;
  }
}

/**
 * Returns a key as a line in canonical form. An older server may have stored a key that this version rejects. The line
 * of such a key is returned unchanged.
 */
function canonicalLineOf(key: PublicKey): string {
  const line = lineOf(key);
  return sshKeySchema.safeParse(line).success ? canonicalSshKey(line) : line;
}

/** Returns the values of a state that the service returns in a different form. */
const derivedValues = (key: PublicKey, owner: Owner) => ({
  data: canonicalLineOf(key),
  filter: filterState(key.filter),
  createdAt: key.createdAt ?? "",
  ...owner,
  ...endState(key.expiresAt),
});

type EvaluatedState = Pick<AccessKey, "name" | "username" | "filter" | "fingerprint"> & {
  readonly data: string;
  readonly ownerId: string;
  readonly expiresAt: string;
};

export const publicKey: Kind = {
  definition,
  keyOf: idWithin,
  reading: listedBy(definition, {
    what: "public keys",
    missed: "unmanaged public keys cannot be detected",
    isRequired: true,
  }),
  parts: undefined,
  watched: {},
  operations: { create: ["createPublicKey"], update: ["updatePublicKey"], delete: ["deletePublicKey"] },
  plan: {
    stage: "objects",
    keyOf: (before) => outputOf(before, "fingerprint"),
    // The address is empty if the owner is not a member, so the owner id is captured too.
    captured: ({ state: { owner, ownerId } }) => ({
      owner: [...new Set([owner, ownerId])].filter(Boolean).join(" "),
    }),
    newKey: (_draft, _planned, { data }) => parseSshPublicKey(String(data)).fingerprint,
    values: (draft, { planned, after, key }) => ({
      fingerprint: key,
      ...ownerIn(draft, after, planned.before),
    }),
  },
  quota: undefined,
  decides: {
    parts: (objects, facts) => ({
      keys: Array.from(objects, ({ state }) => accessKey(state as EvaluatedState, facts)),
    }),
    subject: "key",
  },
  role: undefined,
  changes: undefined,
  linted: undefined,
  imported: { file: "keys", naming: "name" },
};

function accessKey(state: EvaluatedState, { enforcesExpiry, hasAccessModes }: DecidingFacts): AccessKey {
  const { fingerprint, name, username, filter, data, ownerId } = state;
  // Only `gatehouse-server` refuses some types of keys. Other servers accept all types.
  const refusedType = enforcesExpiry ? refusedKeyType(data) : undefined;
  // In identity mode, the SHA256 fingerprint identifies a key. It is undefined for a key that an older server stored
  // and this version rejects.
  const sshFingerprint = hasAccessModes ? sshFingerprintOf(data) : undefined;
  return {
    fingerprint,
    name,
    username,
    filter,
    ...(refusedType !== undefined && { refusedType }),
    ...(sshFingerprint !== undefined && { sshFingerprint }),
    ...policyEnd(state),
    ...(ownerId && { owner: ownerId }),
  };
}

/**
 * Returns the owner of a planned key: the id of the member with the declared e-mail address. If no member has this
 * address, the address itself becomes the id, so that the key authorizes no login.
 * @throws UnpredictableError if the members could not be read
 */
function ownerIn(draft: Draft, after: ResourceValues, before: ResourceValues | undefined): Values {
  const { owner } = after.inputs;
  if (typeof owner !== "string" || owner === "" || !draft.live.facts.enforcesExpiry)
    return { owner: "", ownerId: "" };
  // An unchanged declared address still refers to the same user, even if the user has changed the address of the
  // account. If a deleted key is drift, a plan that reverts the drift restores the key with the owner in the state.
  const stated = before?.inputs.owner === owner ? before : before ? undefined : after;
  const known = stated ? outputOf(stated, "ownerId") : "";
  if (known === "" && !draft.of(members))
    throw new UnpredictableError("its owner cannot be found, because the members could not be read");
  const email = owner.toLowerCase();
  return { owner: email, ownerId: known || userIdOf(draft, email) || email };
}
