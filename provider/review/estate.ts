import { type Client, NotFoundError, PermissionError } from "@gatehouse-access/sdk";
import type { AccessDevice, AccessKey, AccessPolicy, AccessRule } from "@gatehouse-access/sdk/policy";
import type { TenantClient } from "../resources/connection.ts";
import type { ApiKey, Device, FirewallRule, Namespace, PublicKey } from "../resources/listings.ts";
import { isSilent } from "../resources/missing.ts";

/** Latest sessions that are looked at for login names and addresses. */
const SESSIONS_MAX = 500;

/** What was seen of logins in the latest sessions of a namespace. */
export interface SeenLogins {
  readonly sessions: number;
  readonly logins: readonly string[];
  readonly addresses: readonly string[];
}

/** Everything of a namespace that says who can reach what, and who may change that. */
export interface Estate {
  readonly tenant: string;
  /** The name that people know the namespace by; its id where the credential may not read it. */
  readonly name: string;
  readonly policy: AccessPolicy;
  /** All devices, also those that are not accepted and so no part of the policy. */
  readonly devices: readonly Device[];
  /** Undefined where the credential may not read it. */
  readonly members: readonly Namespace["members"][number][] | undefined;
  /** Undefined where the credential may not read them. */
  readonly apiKeys: readonly ApiKey[] | undefined;
  readonly seen: SeenLogins;
  /** What could not be read, as sentences. */
  readonly unknown: readonly string[];
}

/**
 * Reads a namespace: the pages of its lists, once each.
 * @throws RequestError when devices, public keys or firewall rules cannot be read
 */
export async function readEstate(opened: TenantClient): Promise<Estate> {
  const { tenant, client } = opened;
  const unknown: string[] = [];
  const optional = <T>(what: string, read: Promise<T>) =>
    read.catch((error: unknown) => {
      if (!(error instanceof PermissionError || error instanceof NotFoundError)) throw error;
      unknown.push(`${what} could not be read: ${error.message}`);
      return undefined;
    });
  const [devices, keys, rules, namespace, apiKeys, seen] = await Promise.all([
    opened.devices.all(),
    opened.keys.all(),
    rulesOf(opened, unknown),
    optional("members", client.getNamespace({ params: { tenant } })),
    optional("API keys", opened.apiKeys.all()),
    optional("sessions", seenLogins(client)),
  ]);
  return {
    tenant,
    name: namespace?.name ?? tenant,
    policy: {
      devices: devices.filter(({ status }) => status === "accepted").map(accessDevice),
      keys: keys.map(accessKey),
      rules: inOrderOfCreation(rules).map(accessRule),
    },
    devices,
    members: namespace?.members,
    apiKeys,
    seen: seen ?? { sessions: 0, logins: [], addresses: [] },
    unknown,
  };
}

/** Community instances have no firewall, and say so with 404; without a word, somebody else may have said it. */
async function rulesOf({ rules }: TenantClient, unknown: string[]): Promise<FirewallRule[]> {
  try {
    return await rules.all();
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
    if (isSilent(error)) {
      unknown.push(
        "firewall rules were not to be had (404 without a word): access is told as if there were none",
      );
    }
    return [];
  }
}

async function seenLogins(client: Client): Promise<SeenLogins> {
  const logins = new Set<string>();
  const addresses = new Set<string>();
  let sessions = 0;
  for await (const { username, ipAddress } of client.iterate("getSessions", { query: { perPage: 100 } })) {
    logins.add(username);
    addresses.add(ipAddress);
    sessions += 1;
    if (sessions === SESSIONS_MAX) break;
  }
  return { sessions, logins: [...logins], addresses: [...addresses] };
}

/** Ids count upwards; those of other servers, as text, do so too. */
const inOrderOfCreation = (rules: readonly FirewallRule[]): FirewallRule[] =>
  rules.toSorted((left, right) => left.id.localeCompare(right.id, "en", { numeric: true }));

export const accessDevice = ({ uid, name, tags }: Device): AccessDevice => ({ uid, name, tags });

export const accessKey = ({ fingerprint, name, username, filter }: PublicKey): AccessKey => ({
  fingerprint,
  name,
  username,
  filter,
});

export const accessRule = (rule: FirewallRule): AccessRule => {
  const { id, action, active, priority, sourceIp, username, filter } = rule;
  return { id, action, active, priority, sourceIp, username, filter };
};
