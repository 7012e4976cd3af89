import {
  type AccessDevice,
  type AccessDomain,
  type AccessKey,
  type AccessRule,
  ANY_ADDRESS,
} from "@gatehouse-access/sdk/policy";
import type { AccessExplanation } from "./explain.ts";
import { accessRows } from "./rows.ts";
import type { AccessView } from "./view.ts";

/** Access that a key gives: with each of the login names, from each of the addresses, on each of the devices. */
export interface AccessGrant {
  /** Fingerprint of the key. */
  readonly key: string;
  readonly logins: readonly string[];
  readonly addresses: readonly string[];
  /** Id of the rule that allows it; null where no rule matches, which allows. */
  readonly rule: string | null;
  /** Uids. */
  readonly devices: readonly string[];
}

/** What every answer says of the namespace and of the inquiry. */
interface AccessAnswered {
  /** Id of the namespace. */
  readonly namespace: string;
  /** What could not be looked at, as sentences: the answer leaves it out. */
  readonly unseen: readonly string[];
  /** What else could not be read, as sentences. */
  readonly unknown: readonly string[];
  /** How the inquiry was understood, as sentences. */
  readonly notes: readonly string[];
}

/** Who can reach what in a namespace: what `gatehouse access --json` prints. */
export interface AccessReport extends AccessAnswered {
  /** All login names and addresses that were looked at. */
  readonly domain: AccessDomain & {
    /** The address that stands for every one that no rule names. */
    readonly anyAddress: string;
  };
  /** How many of the latest sessions were looked at for login names and addresses. */
  readonly sessions: number;
  /** The devices that are asked about. */
  readonly devices: readonly AccessDevice[];
  /** The keys that are asked about. */
  readonly keys: readonly AccessKey[];
  /** All rules of the namespace. */
  readonly rules: readonly AccessRule[];
  readonly grants: readonly AccessGrant[];
}

/** Why one login is allowed, or is not: what `gatehouse access --explain --json` prints. */
export interface AccessExplanationReport extends AccessExplanation, AccessAnswered {}

/** An {@link AccessReport} as JSON in parts: one object, in which each of `grants` stands on a line of its own. */
export function* accessJson(view: AccessView): Generator<string> {
  const { estate, devices, keys, domain, notes } = view;
  const head: Omit<AccessReport, "grants"> = {
    namespace: estate.tenant,
    domain: { ...domain, anyAddress: ANY_ADDRESS },
    sessions: estate.seen.sessions,
    unseen: estate.unseen,
    unknown: estate.unknown,
    notes,
    devices,
    keys,
    rules: estate.policy.rules,
  };
  yield `${JSON.stringify(head, null, 1).slice(0, -2)},\n "grants": [`;
  let separator = "\n";
  for (const { key, rule, logins, addresses, devices } of accessRows(view)) {
    const grant: AccessGrant = { key: key.fingerprint, logins, addresses, rule: rule?.id ?? null, devices };
    yield `${separator}  ${JSON.stringify(grant)}`;
    separator = ",\n";
  }
  yield "\n ]\n}\n";
}
