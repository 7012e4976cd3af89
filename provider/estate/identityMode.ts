import type { AccessPolicy, IdentityRules, Principal, SshIdentity } from "@gatehouse-access/sdk/policy";
import type { TenantClient } from "../service/connection.ts";
import { isServiceAccount, isUnreadable } from "../service/listings.ts";
import type {
  Member,
  AccessPolicy as WirePolicy,
  SshIdentity as WireSshIdentity,
} from "../service/newerListings.ts";

/** The access policies of a namespace and the principals that are no members, on servers with access modes. */
export interface IdentityState {
  /** True in identity mode. In legacy mode, access policies have no effect. */
  readonly decides: boolean;
  readonly policies: readonly AccessPolicy[];
  readonly serviceAccounts: readonly Principal[];
  /** The SSH keys of users, by user id. Undefined if the credential may not read them. */
  readonly userKeys: ReadonlyMap<string, readonly SshIdentity[]> | undefined;
  /** Lists that could not be read, although outcomes in identity mode depend on them, as sentences. */
  readonly notEvaluated: readonly string[];
}

/** The result of {@link readIdentityState}. */
export interface IdentityReading {
  /** Undefined if the access policies cannot be evaluated; {@link problem} then contains the reason. */
  readonly state: IdentityState | undefined;
  /** The reason why access policies cannot be evaluated, as part of a sentence. */
  readonly problem?: string;
}

/**
 * Reads the access policies and service accounts of a namespace, and the SSH keys of its users.
 * @param members the members of the namespace, including service accounts
 * @param decides true in identity mode
 * @throws RequestError if a list cannot be read for a reason other than missing permissions
 */
export async function readIdentityState(
  { accessPolicies, serviceAccounts, sshIdentities }: TenantClient,
  members: readonly Pick<Member, "id" | "role" | "type">[],
  decides: boolean,
): Promise<IdentityReading> {
  const unreadable: string[] = [];
  const optional = <T>(what: string, list: Promise<T>) =>
    list.catch((error: unknown) => {
      if (!isUnreadable(error)) throw error;
      unreadable.push(`${what} could not be read: ${error.message}`);
      return undefined;
    });
  const [policies, accounts, keys] = await Promise.all([
    optional("the access policies", accessPolicies.all()),
    optional("the service accounts", serviceAccounts.all()),
    optional("the SSH keys of users", sshIdentities.all()),
  ]);
  if (!policies || !accounts) return { state: undefined, problem: unreadable.sort().join("; ") };
  const strange = policies.find((policy) => accessPolicyOf(policy) === undefined);
  if (strange) {
    const problem = `the access policy ${strange.name} has a subject, an action or a re-authentication period that this version cannot evaluate`;
    return { state: undefined, problem };
  }
  const roles = new Map(members.filter(isServiceAccount).map(({ id, role }) => [id, role]));
  const state: IdentityState = {
    decides,
    policies: policies.flatMap((policy) => accessPolicyOf(policy) ?? []),
    serviceAccounts: accounts.map(({ id, name, identities }) => ({
      ...{ id, name, kind: "service account", role: roles.get(id) ?? "service" },
      keys: (identities ?? []).map(sshKeyOf),
    })),
    userKeys: keys && keysByUser(keys),
    notEvaluated: unreadable.map(
      (sentence) => `${sentence}; policies are evaluated as if each user had a key`,
    ),
  };
  return { state };
}

/** Returns SSH keys by the id of their user, and by the e-mail address, which a plan knows before the id. */
function keysByUser(keys: readonly WireSshIdentity[]): Map<string, SshIdentity[]> {
  const byUser = new Map<string, SshIdentity[]>();
  for (const key of keys) {
    for (const user of [key.principalId, key.principalEmail.toLowerCase()]) {
      byUser.set(user, [...(byUser.get(user) ?? []), sshKeyOf(key)]);
    }
  }
  return byUser;
}

/** The maximum period with which servers of version 0.27 do not fail when a login needs a re-authentication. */
const PERIOD_MAX = 2_147_483_647;

/**
 * Returns a policy as the evaluation needs it. Undefined if the policy has a subject or an action of later versions, or a
 * period with which the server fails.
 */
function accessPolicyOf(policy: WirePolicy): AccessPolicy | undefined {
  const { id, name, subject, filter, logins, sourceIp, action, requireReauth, reauthPeriod } = policy;
  const { type, value } = subject;
  if (type !== "user" && type !== "role" && type !== "all-members") return undefined;
  if (action !== "allow" && action !== "deny") return undefined;
  if (requireReauth && reauthPeriod !== null && reauthPeriod > PERIOD_MAX) return undefined;
  return {
    ...{ id, name, subject: { type, value }, filter, logins },
    ...{ sourceIps: sourceIp, action, requireReauth, reauthPeriod },
  };
}

const sshKeyOf = ({ fingerprint, expiresAt, consumedAt, lastReauthAt }: WireSshIdentity): SshIdentity => ({
  ...{ fingerprint, expiresAt, consumedAt, lastReauthAt },
});

/** Returns the rules that decide about logins in identity mode. Invited users count as members. */
export function identityRules(
  { policies, serviceAccounts, userKeys }: IdentityState,
  members: Iterable<Pick<Member, "id" | "email" | "role">>,
): IdentityRules {
  const users = Array.from(members, ({ id, email, role }): Principal => {
    const keys = userKeys && (userKeys.get(id) ?? userKeys.get(email.toLowerCase()) ?? []);
    return { id: id === "" ? email : id, name: email, kind: "user", role, keys };
  });
  return { policies, principals: [...users, ...serviceAccounts] };
}
