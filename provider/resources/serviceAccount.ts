import {
  ConflictError,
  createServiceAccount,
  deleteServiceAccount,
  listServiceAccounts,
} from "@gatehouse-access/sdk";
import { parseSshPublicKey, sha256Fingerprint } from "@gatehouse-access/sdk/contract";
import type { Principal, SshIdentity } from "@gatehouse-access/sdk/policy";
import { DAY } from "@gatehouse-access/sdk/times";
import { z } from "zod";
import type { ResourceValues } from "../engine/index.ts";
import { defineResource } from "../model/defineResource.ts";
import { listed } from "../model/definition.ts";
import type { Draft } from "../model/draft.ts";
import { optional, output, required, type State, tenantInput } from "../model/fields.ts";
import { EXAMPLE_TENANT, IdForm } from "../model/idForm.ts";
import { type Kind, listedBy } from "../model/kind.ts";
import type { LiveObject, Objects } from "../model/object.ts";
import { isHidden, outputOf, type PlannedStep } from "../model/plannedStep.ts";
import { daysOf, daysOnWire, daysSchema, hasEnded, NEVER, stateTime } from "../model/validity.ts";
import { idWithin } from "../model/values.ts";
import { ResourceError, said } from "../resourceError.ts";
import type { TenantClient } from "../service/connection.ts";
import { isServiceAccount, isUnreadable, type ListingSource } from "../service/listings.ts";
import { type ItemOf, listOf, wholeSource } from "../service/wholeLists.ts";
import type { Values } from "../values.ts";
import { byTexts } from "../words.ts";
import { canonicalSshKey, lineOf, keys as publicKeys, sshFingerprintOf, sshKeySchema } from "./publicKey.ts";
import { sshIdentities } from "./sshIdentities.ts";

const fingerprintOf = (line: string): string => sha256Fingerprint(parseSshPublicKey(line));

const inputs = {
  tenant: tenantInput,
  name: required(z.string().min(1), {
    description: "The display name of the account. Several accounts can have the same name.",
    notDecisive: "the name is only displayed",
    replaces: true,
  }),
  data: required(sshKeySchema, {
    description:
      "The public key of the account, as one line in OpenSSH format. The comment and extra white space are ignored. Must be different from the keys of all other accounts and users of the namespace.",
    replaces: true,
    canonical: canonicalSshKey,
    // The service returns only the fingerprint of the key.
    sameAs: ({ fingerprint }, line) => fingerprint === fingerprintOf(line),
  }),
  singleUse: optional(z.boolean(), {
    description:
      "Whether the key works for one login only. After that login, the next run replaces the account, so that the key works once more.",
    default: false,
    replaces: true,
  }),
  validDays: optional(daysSchema, {
    description:
      "The number of days until the key expires. If `-1`, the key never expires. After the expiration, the next run replaces the account.",
    default: NEVER,
    replaces: true,
  }),
};

const outputs = {
  accountId: output(z.string(), {
    description:
      "The ID of the account. An `AccessPolicy` refers to the account by this ID (`subject.user`).",
  }),
  fingerprint: output(z.string(), {
    description:
      "The SHA-256 fingerprint of the key, for example `SHA256:J/1Zo…`. Empty if the key was deleted.",
  }),
  expiresAt: output(z.string(), {
    description: "The time when the key expires. Empty if the key never expires.",
  }),
  consumedAt: output(z.string(), {
    description: "The time when a single-use key was used. Empty if the key was not used.",
  }),
  createdAt: output(z.string(), {
    description: "The time when the account was created.",
    // The creation time in the response to a create differs slightly from the stored creation time.
    volatile: true,
  }),
};

type AccountState = State<typeof inputs, typeof outputs>;

/** A service account with its SSH key, as the service returns it. */
type ServiceAccount = ItemOf<typeof listServiceAccounts>;

/** The service accounts of a namespace, by id. */
export const serviceAccounts: ListingSource<ServiceAccount> = (client) =>
  wholeSource("ServiceAccount", () => listOf(client, listServiceAccounts));

const ids = new IdForm("ServiceAccount", {
  tenant: EXAMPLE_TENANT,
  accountId: "7506174b-8351-4509-8190-622626608dc5",
});

const definition = defineResource({
  name: "ServiceAccount",
  description:
    "A service account with one SSH key, for logins of programs in a namespace with the access mode `identity`. The account gets access from an `AccessPolicy`. Requires ShellHub 0.27 or later; `gatehouse-server` has no such objects. Every change replaces the account: the old account is deleted first, because two accounts cannot have the same key. If the creation of the new account fails, the account stays deleted until the next run creates it.",
  id: ids,
  inputs,
  outputs,
  actsIn: "identity",
  deletesFirst: true,
  needs: (_inputs, state) => (state ? [] : [{ capability: "service accounts" }]),
  identity: {
    fields: ["tenant", "data"],
    // The state does not contain the public key if the account was imported.
    ofInputs: ({ tenant, data = "" }) =>
      data === ""
        ? []
        : [{ key: `service account ${tenant ?? ""} ${fingerprintOf(data)}`, property: "data" }],
  },

  stale: ({ expiresAt, consumedAt }, _inputs, now) => [
    ...(hasEnded(expiresAt, now) ? [{ field: "validDays", replaces: true }] : []),
    ...(consumedAt ? [{ field: "singleUse", replaces: true }] : []),
  ],

  async find(connection, { tenant: wanted, data }) {
    const { tenant, listing } = await connection.tenant(wanted);
    const found = withKey(await listing(serviceAccounts).all(), fingerprintOf(data));
    return found && { id: `${tenant}/${found.id}`, state: toState(tenant, found, { data }) };
  },

  async list(connection, tenant) {
    const opened = await connection.tenant(tenant);
    const accounts = await opened.listing(serviceAccounts).all();
    const lines = accounts.length === 0 ? new Map<string, string>() : await publicKeyLines(opened);
    return accounts.map((account) => {
      // The service does not return the public key of the account. It may return the same key as a public key of the
      // namespace.
      const line = lines.get(account.identities?.[0]?.fingerprint ?? "");
      const data = line === undefined ? "" : canonicalSshKey(line);
      const state = toState(tenant, account, { data });
      const reason = undeclarable(state);
      return listed(`${tenant}/${account.id}`, account.name, state, {
        ...(reason !== undefined && { reason }),
        facts: { identities: account.identities ?? [] },
      });
    });
  },

  async create(connection, { tenant: wanted, name, data, singleUse = false, validDays = NEVER }) {
    const opened = await connection.tenant(wanted);
    const { tenant, client, listing } = opened;
    const body = { name, data, singleUse, expiresIn: daysOnWire(validDays) };
    try {
      const { body: created } = await client.request(createServiceAccount, { body });
      listing(serviceAccounts).forget();
      return { id: `${tenant}/${created.id}`, state: toState(tenant, created, { data }) };
    } catch (error) {
      throw error instanceof ConflictError ? await conflictOf(opened, data, error) : error;
    }
  },

  async read(connection, id, state) {
    const { tenant, accountId } = ids.split(id);
    const { listing } = await connection.tenant(tenant);
    const found = await listing(serviceAccounts).find(accountId);
    return found && { id, state: toState(tenant, found, state) };
  },

  async update(_connection, id) {
    throw new ResourceError("ServiceAccount", {
      code: "unsupported_change",
      detail: said`${id} cannot be changed`,
      remedy: said`declare the account as it is, or delete it`,
    });
  },

  async delete(connection, id) {
    const { tenant, accountId } = ids.split(id);
    const { client, listing } = await connection.tenant(tenant);
    await listing(serviceAccounts).remove(accountId, client, (witnessed) =>
      witnessed.request(deleteServiceAccount, { params: { id: accountId } }),
    );
  },
});

const withKey = (accounts: readonly ServiceAccount[], fingerprint: string): ServiceAccount | undefined =>
  accounts.find(({ identities }) => identities?.some((identity) => identity.fingerprint === fingerprint));

/**
 * Returns the public keys of a namespace as lines in OpenSSH format, by SHA256 fingerprint. Returns an empty map if the
 * credential has no permission to read the keys.
 */
async function publicKeyLines({ listing }: TenantClient): Promise<ReadonlyMap<string, string>> {
  const all = await listing(publicKeys)
    .all()
    .catch((error: unknown) => {
      if (isUnreadable(error)) return [];
      throw error;
    });
  return new Map(
    all.flatMap((key) => {
      const line = lineOf(key);
      const fingerprint = sshFingerprintOf(line);
      return fingerprint === undefined ? [] : [[fingerprint, line] as const];
    }),
  );
}

/**
 * Returns the reason why a program cannot declare an existing account. Returns undefined if a program can declare the
 * account.
 */
function undeclarable({ data, consumedAt, expiresAt }: AccountState): string | undefined {
  if (data === "") return "the service does not return the public key of a service account";
  // The next run would replace such an account immediately after a program declared it.
  const isOver = consumedAt !== "" || hasEnded(expiresAt, new Date());
  return isOver ? "its key has expired or was used up" : undefined;
}

/**
 * Returns the error for a create whose SSH key is already registered. If another service account has the key, returns
 * the service's error unchanged, because the create may adopt that account.
 */
async function conflictOf(
  { tenant, listing }: TenantClient,
  data: string,
  cause: ConflictError,
): Promise<unknown> {
  const fingerprint = fingerprintOf(data);
  listing(serviceAccounts).forget();
  if (withKey(await listing(serviceAccounts).all(), fingerprint)) return cause;
  const keys = await listing(sshIdentities)
    .all()
    .catch((error: unknown) => {
      // API keys have no permission to read the SSH keys of users. If the credential is an API key, the error therefore
      // does not contain the name of the user.
      if (isUnreadable(error)) return [];
      throw error;
    });
  const owner = keys.find((key) => key.fingerprint === fingerprint);
  const user = owner ? said`The user ${owner.principalEmail || owner.principalId}` : said`A user`;
  return new ResourceError(
    "ServiceAccount",
    {
      code: "already_exists",
      field: ["data"],
      detail: said`${user} of the namespace ${tenant} has already registered the key ${fingerprint}`,
      remedy: said`use another key`,
    },
    { cause },
  );
}

/**
 * Returns the state of an account.
 * @param known the values in the state or the program. The state gets two kinds of values from them: the public key,
 *   which the service does not return, and the settings of a key that was deleted from the account
 */
function toState(tenant: string, account: ServiceAccount, known: Partial<AccountState>): AccountState {
  const { data = "" } = known;
  const [key] = account.identities ?? [];
  const isSame = key !== undefined && data !== "" && fingerprintOf(data) === key.fingerprint;
  return {
    tenant,
    name: account.name,
    data: isSame ? data : "",
    singleUse: key?.singleUse ?? known.singleUse ?? false,
    validDays: key ? daysOf(key.createdAt, key.expiresAt) : (known.validDays ?? NEVER),
    accountId: account.id,
    fingerprint: key?.fingerprint ?? "",
    expiresAt: stateTime(key?.expiresAt ?? null),
    consumedAt: stateTime(key?.consumedAt ?? null),
    createdAt: account.createdAt,
  };
}

/** The role of a service account on a server that does not list service accounts as members. */
const ROLE = "service";

interface PrincipalState {
  readonly accountId: string;
  readonly name: string;
  readonly fingerprint: string;
  readonly expiresAt: string;
  readonly consumedAt: string;
}

export const serviceAccount: Kind = {
  definition,
  keyOf: idWithin,
  reading: listedBy(definition, {
    what: "the service accounts",
    missed: "unmanaged service accounts cannot be detected",
    async read(connection, tenant) {
      const listed = (await definition.list?.(connection, tenant)) ?? [];
      // The namespace is not read without service accounts: older servers have none, and the credential may have no
      // permission to read the namespace.
      if (listed.length === 0) return { objects: [] };
      const namespace = await connection.namespaces.find(tenant);
      // Newer servers also list service accounts as members, with their role.
      const accounts = (namespace?.members ?? []).filter(isServiceAccount);
      const roles = new Map(accounts.map(({ id, role }) => [id, role]));
      return {
        objects: listed.map((one) => ({
          ...one,
          facts: { ...one.facts, role: roles.get(idWithin(one)) ?? ROLE },
        })),
      };
    },
  }),
  parts: undefined,
  watched: {},
  operations: { create: ["createServiceAccount"], update: [], delete: ["deleteServiceAccount"] },
  plan: {
    stage: "principals",
    captured(object) {
      const { role, keys = [] } = principal(object);
      // The keys are sorted, because the service returns them in any order. The captured values omit whether a
      // single-use key was used, because a login can use the key up without a plan.
      const lasting = keys.map(({ fingerprint, expiresAt }) => ({ fingerprint, expiresAt }));
      return { role, keys: lasting.sort(byTexts(({ fingerprint }) => fingerprint)) };
    },
    keyOf: (before) => outputOf(before, "accountId"),
    newKey: keyOfNew,
    values(draft, { planned, after, inputs, key, object }) {
      draft.newPrincipals.set(planned.step.urn, key);
      if (object) return object.state;
      const { data, validDays = NEVER } = inputs;
      return {
        accountId: key,
        fingerprint: fingerprintOf(String(data)),
        consumedAt: "",
        expiresAt: keyEnd(after, Number(validDays), draft.now),
      };
    },
    declaredEnd: (after, now) => {
      const { validDays = NEVER } = after.inputs;
      return typeof validDays === "number" ? keyEnd(after, validDays, now) : "";
    },
  },
  quota: undefined,
  decides: {
    parts: (objects) => ({ principals: Array.from(objects, principal) }),
    subject: "service account",
  },
  role: undefined,
  changes: undefined,
  linted: undefined,
  imported: { file: "serviceAccounts", naming: "name" },
};

function keyEnd({ outputs }: ResourceValues, validDays: number, now: Date): string {
  const { expiresAt } = outputs;
  if (typeof expiresAt === "string" && !isHidden(expiresAt)) return expiresAt;
  return validDays === NEVER ? "" : new Date(now.getTime() + validDays * DAY).toISOString();
}

function principal({ state, facts }: LiveObject): Principal {
  const { accountId: id, name, fingerprint, expiresAt, consumedAt } = state as unknown as PrincipalState;
  const live = facts?.identities as readonly SshIdentity[] | undefined;
  const planned = {
    fingerprint,
    expiresAt: expiresAt || null,
    consumedAt: consumedAt || null,
    lastReauthAt: null,
  };
  const keys = live?.map((one) => ({
    fingerprint: one.fingerprint,
    expiresAt: one.expiresAt,
    consumedAt: one.consumedAt,
    lastReauthAt: one.lastReauthAt,
  }));
  return {
    id,
    name,
    kind: "service account",
    role: String(facts?.role ?? ROLE),
    keys: keys ?? [planned],
  };
}

/**
 * Returns the key of the account that a new resource creates or adopts. With `adopt`, the resource adopts the live
 * account that has the same SSH key. A replaced resource does not adopt that account, because the replacement deletes
 * it first.
 */
function keyOfNew({ live }: Draft, { step, after }: PlannedStep, { data }: Values): string | undefined {
  const fingerprint = fingerprintOf(String(data));
  if (after?.inputs.adopt && step.op === "create") {
    const found = accountWithKey(live.of(definition), fingerprint);
    if (found !== undefined) return found;
  }
  // If a deleted account is drift, a plan that reverts the drift restores the account with the id in the state, because
  // access policies refer to this id.
  return (after && outputOf(after, "accountId")) || `${step.urn} ${fingerprint}`;
}

const accountWithKey = (accounts: Objects | undefined, fingerprint: string): string | undefined =>
  [...(accounts ?? [])].find(([, object]) =>
    principal(object).keys?.some((key) => key.fingerprint === fingerprint),
  )?.[0];
