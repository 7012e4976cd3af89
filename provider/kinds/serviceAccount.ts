import { parseSshPublicKey, sha256Fingerprint } from "@gatehouse-access/sdk/contract";
import type { Principal, SshIdentity } from "@gatehouse-access/sdk/policy";
import { DAY } from "@gatehouse-access/sdk/times";
import type { ResourceValues } from "../engine/index.ts";
import { definitionsByName } from "../resources/index.ts";
import { NEVER } from "../resources/validity.ts";
import { idWithin } from "../resources/values.ts";
import { isServiceAccount } from "../service/listings.ts";
import type { Values } from "../values.ts";
import { byTexts } from "../words.ts";
import type { Draft } from "./draft.ts";
import { type Kind, listedBy } from "./kind.ts";
import type { LiveObject, Objects } from "./object.ts";
import { isHidden, outputOf, type PlannedStep } from "./plannedStep.ts";

const definition = definitionsByName.ServiceAccount;

/** The role of service accounts on servers that do not list them as members. */
const ROLE = "service";

interface AccountState {
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
      // Older servers have no service accounts, and the credential may not be able to read the namespace.
      if (listed.length === 0) return { objects: [] };
      const namespace = await connection.namespaces.find(tenant);
      // Newer servers list service accounts as members too, with their role.
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
      // The service returns the keys in any order. A login uses up a single-use key without a plan.
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
  decides: {
    parts: (objects) => ({ principals: Array.from(objects, principal) }),
    subject: "service account",
  },
  role: undefined,
  changes: undefined,
  linted: undefined,
  imported: { file: "serviceAccounts", naming: "name" },
};

const fingerprintOf = (line: string): string => sha256Fingerprint(parseSshPublicKey(line));

function keyEnd({ outputs }: ResourceValues, validDays: number, now: Date): string {
  const { expiresAt } = outputs;
  if (typeof expiresAt === "string" && !isHidden(expiresAt)) return expiresAt;
  return validDays === NEVER ? "" : new Date(now.getTime() + validDays * DAY).toISOString();
}

function principal({ state, facts }: LiveObject): Principal {
  const { accountId: id, name, fingerprint, expiresAt, consumedAt } = state as unknown as AccountState;
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
 * Returns the key of the account that a new resource creates, or of the live account with the same SSH key, which the
 * resource adopts. A replacement deletes this account first.
 */
function keyOfNew({ live }: Draft, { step, after }: PlannedStep, { data }: Values): string | undefined {
  const fingerprint = fingerprintOf(String(data));
  if (after?.inputs.adopt && step.op === "create") {
    const found = withKey(live.of(definition), fingerprint);
    if (found !== undefined) return found;
  }
  // Drift of a deleted account restores the account with its id, to which access policies refer.
  return (after && outputOf(after, "accountId")) || `${step.urn} ${fingerprint}`;
}

const withKey = (accounts: Objects | undefined, fingerprint: string): string | undefined =>
  [...(accounts ?? [])].find(([, object]) =>
    principal(object).keys?.some((key) => key.fingerprint === fingerprint),
  )?.[0];
