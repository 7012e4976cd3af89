import {
  type Access,
  type AccessDevice,
  type AccessKey,
  type AccessRule,
  explain,
  filterMatches,
  type Grant,
  grantsOf,
  keyAdmits,
} from "@gatehouse-access/sdk/policy";
import { answerOf, type Judge, type Judgement } from "./judgement.ts";
import { type QueriedAccess, queriedAccess, readNetworks, readQuery, within } from "./queriedAccess.ts";
import type { PolicyCounterexample } from "./results.ts";

/** What `expect(access)` can say. */
export const accessMatchers = { toAllow, onlyFrom } satisfies Record<string, Judge>;

function toAllow(subject: unknown, [query, ...more]: readonly unknown[], negated: boolean): Judgement {
  if (more.length > 0) throw new TypeError("toAllow(): takes one query");
  const queried = queriedAccess(accessOf("toAllow", subject), readQuery("toAllow", query));
  const { count, examples } = allowedCases(queried);
  const missing = missingOf(queried);
  if (count > 0) return { ...found(queried, count), holds: true, counterexamples: examples };
  return {
    ...found(queried, 0),
    holds: false,
    message: missing === undefined ? "nothing of it is allowed" : `nothing of it is allowed: it ${missing}`,
    counterexamples: negated ? [] : refusedExamples(queried),
    vacuous: missing,
  };
}

function onlyFrom(subject: unknown, [given, query = {}, ...more]: readonly unknown[]): Judgement {
  if (more.length > 0) throw new TypeError("onlyFrom(): takes networks and a query");
  const access = accessOf("onlyFrom", subject);
  const networks = readNetworks("onlyFrom", given);
  const read = readQuery("onlyFrom", query);
  if (read.from) throw new TypeError("onlyFrom(): from: its networks are the first argument");
  const outside = queriedAccess(access, read, networks, (address) => !within(networks, address));
  const { count, examples } = allowedCases(outside);
  const vacuous = missingOf(outside);
  if (count > 0) {
    const seen = found(outside, count);
    const message = `${seen.message} from elsewhere`;
    return { ...seen, holds: false, message, counterexamples: examples };
  }
  return { ...found(outside, 0), holds: true, message: "nothing is allowed from elsewhere", vacuous };
}

function found({ access }: QueriedAccess, cases: number) {
  const { policy, domain } = access;
  return {
    message: cases === 1 ? "1 case is allowed" : `${cases} cases are allowed`,
    cases,
    lookedAt: { keys: policy.keys.length, devices: policy.devices.length, ...domain },
  };
}

const missingOf = ({ missing }: QueriedAccess): string | undefined =>
  missing.length > 0 ? `matched no ${missing.join(" and no ")}` : undefined;

/** Access is known by its form, since a policy file may have another copy of the class. */
function accessOf(matcher: string, subject: unknown): Pick<Access, "policy" | "domain"> {
  const { policy, domain } = (subject ?? {}) as Partial<Access>;
  if (!policy || !domain) throw new TypeError(`${matcher}(): is for access, as a policy test gets it`);
  return { policy, domain };
}

/** Most counterexamples that are shown of one assertion. */
const SHOWN_MAX = 5;

/** The cases that are allowed. Examples differ in key, login name or rule before they differ in the device alone. */
function allowedCases(queried: QueriedAccess) {
  const devices = new Map(queried.access.policy.devices.map((device) => [device.uid, device]));
  const [first, more]: [PolicyCounterexample[], PolicyCounterexample[]] = [[], []];
  let count = 0;
  for (const grant of grantsOf(queried.access)) {
    let known = first;
    for (const uid of grant.devices) {
      const device = devices.get(uid);
      const address = device && addressOf(grant, device, queried);
      if (!device || address === undefined) continue;
      count += 1;
      if (known.length < SHOWN_MAX) known.push(example(grant.key, grant.login, address, device, grant.rule));
      known = more;
    }
  }
  return { count, examples: [...first, ...more].slice(0, SHOWN_MAX) };
}

/** The first address from which the case fits the condition, if there is one. */
function addressOf(grant: Grant, device: AccessDevice, { where }: QueriedAccess): string | undefined {
  const { key, login, rule, addresses } = grant;
  if (!where) return addresses[0];
  return addresses.find((address) => answerOf("where", where({ key, login, address, device, rule })));
}

/** For some keys one login that is refused, the nearest to being allowed, and what refuses it. */
function refusedExamples({ access: { policy, domain } }: QueriedAccess): PolicyCounterexample[] {
  const [address] = domain.addresses;
  return policy.keys.slice(0, SHOWN_MAX).flatMap((key) => {
    const device =
      policy.devices.find((candidate) => filterMatches(key.filter, candidate)) ?? policy.devices[0];
    if (!device || address === undefined) return [];
    const admits = (name: string) => keyAdmits({ username: key.username, filter: {} }, device, name);
    const login = domain.logins.find(admits) ?? domain.logins[0] ?? "";
    const { fingerprint } = key;
    const { refusedBy, rule } = explain(policy, { fingerprint, login, address, uid: device.uid });
    // A login that is allowed here did not fulfil the condition of the query.
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
