import {
  type AccessDevice,
  type AccessKey,
  type AccessRule,
  explain,
  filterMatches,
  type Grant,
  grantsOf,
  keyAdmits,
} from "@gatehouse-access/sdk/policy";
import { answerOf } from "./answer.ts";
import type { PolicyCounterexample } from "./results.ts";
import type { Selection } from "./selection.ts";

/** Most counterexamples that are shown of one assertion. */
const SHOWN_MAX = 5;

/** Cases that a selection has, and some of them. */
export interface Cases {
  readonly count: number;
  readonly examples: readonly PolicyCounterexample[];
}

/** The cases that are allowed; shown are different keys, login names and rules before more devices. */
export function allowedCases(selection: Selection): Cases {
  const devices = new Map(selection.access.policy.devices.map((device) => [device.uid, device]));
  const [first, more]: [PolicyCounterexample[], PolicyCounterexample[]] = [[], []];
  let count = 0;
  for (const grant of grantsOf(selection.access)) {
    let known = first;
    for (const uid of grant.devices) {
      const device = devices.get(uid);
      const address = device && addressOf(grant, device, selection);
      if (!device || address === undefined) continue;
      count += 1;
      if (known.length < SHOWN_MAX) known.push(example(grant.key, grant.login, address, device, grant.rule));
      known = more;
    }
  }
  return { count, examples: [...first, ...more].slice(0, SHOWN_MAX) };
}

/** The first address from which the case fits the condition, if there is one. */
function addressOf(grant: Grant, device: AccessDevice, { where }: Selection): string | undefined {
  const { key, login, rule, addresses } = grant;
  if (!where) return addresses[0];
  return addresses.find((address) => answerOf("where", where({ key, login, address, device, rule })));
}

/** Of some keys one login that is refused, and what refuses it: the one that comes nearest to being allowed. */
export function refusedExamples({ access: { policy, domain } }: Selection): PolicyCounterexample[] {
  const [address] = domain.addresses;
  return policy.keys.slice(0, SHOWN_MAX).flatMap((key) => {
    const device =
      policy.devices.find((candidate) => filterMatches(key.filter, candidate)) ?? policy.devices[0];
    if (!device || address === undefined) return [];
    const admits = (name: string) => keyAdmits({ username: key.username, filter: {} }, device, name);
    const login = domain.logins.find(admits) ?? domain.logins[0] ?? "";
    const { fingerprint } = key;
    const { refusedBy, rule } = explain(policy, { fingerprint, login, address, uid: device.uid });
    // What is allowed here was refused by the query's own condition.
    if (refusedBy === undefined || refusedBy === "key") return [];
    return [{ ...example(key, login, address, device, rule), refusedBy }];
  });
}

function example(
  { fingerprint, name }: AccessKey,
  login: string,
  address: string,
  device: AccessDevice,
  rule: AccessRule | null,
): PolicyCounterexample {
  return {
    login,
    address,
    device: { uid: device.uid, name: device.name },
    key: { fingerprint, name },
    rule: rule && { id: rule.id, action: rule.action, priority: rule.priority },
  };
}
