import { sshAccessModeOf } from "@gatehouse-access/sdk";
import { EngineError } from "../engine/index.ts";
import {
  accessPoliciesFor,
  type EnrolledKey,
  type ExistingPolicies,
  type LegacyKey,
  type PolicyInputs,
  type RefusalOf,
} from "../import/accessPolicies.ts";
import type { ResourceDefinition } from "../model/definition.ts";
import { type Declarable, declarable, type LiveObject } from "../namespace/liveObjects.ts";
import { accessPolicy } from "../resources/accessPolicy.ts";
import { readRules } from "../resources/firewallRule.ts";
import { publicKey, sshFingerprintOf } from "../resources/publicKey.ts";
import { serviceAccount, serviceAccounts } from "../resources/serviceAccount.ts";
import { type SshIdentity, sshIdentities } from "../resources/sshIdentities.ts";
import type { Connection } from "../service/connection.ts";
import { isUnreadable, type Namespace } from "../service/listings.ts";
import type { Values } from "../values.ts";

/** The declarations that move a namespace to identity mode. */
interface Move {
  /** New access policies and service accounts. */
  readonly newObjects: readonly Declarable[];
  /**
   * Sentences about the access that access policies cannot express. This access changes when the namespace switches to
   * identity mode.
   */
  readonly inexpressible: readonly string[];
}

/** The access that every namespace loses when it switches to identity mode. */
const PASSWORDS = "logins with the password of a device account end in identity mode";
const KEYS_UNREAD =
  "the SSH keys of users could not be read; if a user has enrolled a public key, the service rejects a service account with this key";

/**
 * Reads a namespace in legacy mode, and returns the declarations that grant the same access in identity mode.
 * @param objects the objects of the namespace, including all public keys
 * @throws EngineError (`import`) if the namespace is not in legacy mode, or if no access policy would exist
 */
export async function readMove(
  connection: Connection,
  namespace: Namespace,
  objects: readonly LiveObject[],
): Promise<Move> {
  const { tenantId: tenant, name } = namespace;
  const mode = sshAccessModeOf(namespace);
  if (mode === undefined) {
    throw new EngineError(
      "import",
      `The server of the namespace ${name} has no access modes. Use ShellHub 0.27 or later.`,
    );
  }
  if (mode === "identity") {
    throw new EngineError(
      "import",
      `The namespace ${name} is already in identity mode. Omit --to-identity-mode.`,
    );
  }
  if (mode !== "legacy") {
    throw new EngineError(
      "import",
      `The namespace ${name} has an access mode that this version of gatehouse does not know, so nothing was written. Update gatehouse.`,
    );
  }
  const policies = await existingPolicies(connection, tenant);
  const rules = await readRules(connection, tenant);
  const { enrolled, isComplete } = await enrolledKeys(connection, tenant);
  const publicKeys = objects.filter(({ definition }) => definition === publicKey.definition);
  const { readable = [], invalid = [] } = Object.groupBy(publicKeys, ({ state }) =>
    sshFingerprintOf(String(state.data)) === undefined ? "invalid" : "readable",
  );
  const keys = readable.map(({ state }) => state as unknown as LegacyKey);
  const converted = accessPoliciesFor({ keys, rules, enrolled, policies }, refusalOf);
  if (converted.policies.length === 0 && policies.size === 0) {
    const cause = `No access policy can express the access in the namespace ${name}, so nothing was written`;
    const reasons = converted.inexpressible.map(({ text }) => `\n  ${text}`).join("");
    throw new EngineError(
      "import",
      `${cause}. Without a policy, the server creates one that gives the owner access to every device. Declare an AccessPolicy first.${reasons}`,
    );
  }
  const unread = declarable(invalid).undeclarable.map(
    ({ object, reason }) =>
      `${object.definition.name} ${object.name}: ${reason}; the key gets no access policy`,
  );
  return {
    newObjects: converted.policies.flatMap(newObjects),
    inexpressible: [
      ...converted.inexpressible.map(({ text }) => text),
      ...unread,
      ...(isComplete ? [] : [KEYS_UNREAD]),
      PASSWORDS,
    ],
  };
}

async function existingPolicies(connection: Connection, tenant: string): Promise<ExistingPolicies> {
  const found = (await accessPolicy.definition.list?.(connection, tenant)) ?? [];
  return new Map(
    found.map(({ id, state }) => [
      id,
      state as unknown as PolicyInputs & { readonly requireReauth: boolean },
    ]),
  );
}

/**
 * Returns the SSH keys in a namespace. If the credential can only read the keys of service accounts, the list is
 * incomplete.
 */
async function enrolledKeys(
  connection: Connection,
  tenant: string,
): Promise<{ readonly enrolled: readonly EnrolledKey[]; readonly isComplete: boolean }> {
  const { listing } = await connection.tenant(tenant);
  const all = await listing(sshIdentities)
    .all()
    .catch((error: unknown) => {
      if (isUnreadable(error)) return undefined;
      throw error;
    });
  if (all) return { enrolled: all.map(enrolledKey), isComplete: true };
  const accounts = await listing(serviceAccounts).all();
  const keys = accounts.flatMap(({ identities }) => (identities ?? []).map(enrolledKey));
  return { enrolled: keys, isComplete: false };
}

const enrolledKey = (key: SshIdentity): EnrolledKey => ({
  fingerprint: key.fingerprint,
  principal: key.principalId,
  principalName: key.principalType === "service" ? key.principalName : key.principalEmail,
  isServiceAccount: key.principalType === "service",
  isLimited: key.expiresAt !== null || key.singleUse || key.consumedAt !== null,
});

/**
 * Checks with {@link declarable} whether a program can declare a new object. The object does not exist on the service
 * yet.
 */
const split = (definition: ResourceDefinition, id: string, state: Values) =>
  declarable([{ definition, id, name: String(state.name), state }]);

const refusalOf: RefusalOf = (policy, account) =>
  [
    split(accessPolicy.definition, "", { ...policy, subject: { user: "new account" } }),
    ...(account ? [split(serviceAccount.definition, "", { ...account })] : []),
  ].flatMap(({ undeclarable }) => undeclarable)[0]?.reason;

function declaration(...object: Parameters<typeof split>): Declarable {
  const { declarable: possible, undeclarable } = split(...object);
  if (!possible[0]) throw new Error(`a program cannot declare ${object[0].name}: ${undeclarable[0]?.reason}`);
  return possible[0];
}

/** Declares a policy. If the subject of the policy is a new service account, also declares this account. */
function newObjects({ subject, ...policy }: PolicyInputs, index: number): Declarable[] {
  const id = `new ${index}`;
  if (!("account" in subject)) return [declaration(accessPolicy.definition, id, { ...policy, subject })];
  return [
    declaration(serviceAccount.definition, id, { ...subject.account }),
    declaration(accessPolicy.definition, id, { ...policy, subject: { user: id } }),
  ];
}
