import { inspect } from "node:util";
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
import { z } from "zod";
import { counted, firstOf } from "../words.ts";
import { type QueriedAccess, queriedAccess, readNetworks, readQuery, within } from "./queriedAccess.ts";
import type { EvaluatedCases, PolicyCounterexample } from "./results.ts";
import type { MatcherName } from "./written/running.ts";

/** The result of a matcher. For an assertion with `.not`, the result is negated later. */
interface Judgment {
  readonly holds: boolean;
  readonly message: string;
  readonly counterexamples?: readonly PolicyCounterexample[];
  readonly cases?: number;
  readonly evaluated?: EvaluatedCases;
  /** Reason why the assertion is always true, for example because the query matches no key; otherwise undefined. */
  readonly vacuous?: string | undefined;
}

/**
 * Evaluates a matcher. If `negated` is true, examples of refused logins are omitted. Throws TypeError for an invalid
 * subject or invalid arguments.
 */
type Judge = (subject: unknown, args: readonly unknown[], negated: boolean) => Judgment;

export const matchers: Readonly<Record<MatcherName, Judge>> = {
  toAllow,
  onlyFrom,
  exactlyOneOwner,
  everyKeyExpires,
  toSatisfy,
  toAllSatisfy,
};

/**
 * Returns the result of a predicate.
 * @throws TypeError if the result is not a boolean. A promise, for example, would always count as true.
 */
function booleanOf(predicate: string, result: unknown): boolean {
  if (typeof result === "boolean") return result;
  throw new TypeError(
    `${predicate} must return true or false synchronously, but returned ${inspect(result)}`,
  );
}

function toAllow(subject: unknown, [query, ...more]: readonly unknown[], negated: boolean): Judgment {
  if (more.length > 0) throw new TypeError("toAllow(): takes exactly one query");
  const queried = queriedAccess(accessOf("toAllow", subject), readQuery("toAllow", query));
  const { count, examples } = allowedCases(queried);
  const missing = missingOf(queried);
  if (count > 0) return { ...found(queried, count), holds: true, counterexamples: examples };
  return {
    ...found(queried, 0),
    holds: false,
    message:
      missing === undefined
        ? "no matching login is allowed"
        : `no matching login is allowed: the query ${missing}`,
    counterexamples: negated ? [] : refusedExamples(queried),
    vacuous: missing,
  };
}

function onlyFrom(subject: unknown, [given, query = {}, ...more]: readonly unknown[]): Judgment {
  if (more.length > 0) throw new TypeError("onlyFrom(): takes networks and a query");
  const access = accessOf("onlyFrom", subject);
  const networks = readNetworks("onlyFrom", given);
  const read = readQuery("onlyFrom", query);
  if (read.from) throw new TypeError("onlyFrom(): from: pass the networks as the first argument");
  const outside = queriedAccess(access, read, networks, (address) => !within(networks, address));
  const { count, examples } = allowedCases(outside);
  const vacuous = missingOf(outside);
  if (count > 0) {
    const seen = found(outside, count);
    const message = `${seen.message} from other addresses`;
    return { ...seen, holds: false, message, counterexamples: examples };
  }
  return { ...found(outside, 0), holds: true, message: "no case is allowed from other addresses", vacuous };
}

function found({ access }: QueriedAccess, cases: number) {
  const { policy, evaluated } = access;
  return {
    message: cases === 1 ? "1 case is allowed" : `${cases} cases are allowed`,
    cases,
    evaluated: { keys: policy.keys.length, devices: policy.devices.length, ...evaluated },
  };
}

const missingOf = ({ missing }: QueriedAccess): string | undefined =>
  missing.length > 0 ? `matched no ${missing.join(" and no ")}` : undefined;

/**
 * Checks that the fields exist, and does not use `instanceof`, since a policy file may import another copy of the class
 * `Access`.
 */
function accessOf(matcher: string, subject: unknown): Pick<Access, "policy" | "evaluated"> {
  const { policy, evaluated } = (subject ?? {}) as Partial<Access>;
  if (!policy || !evaluated)
    throw new TypeError(`${matcher}(): needs the access that the policy test receives`);
  return { policy, evaluated };
}

const SHOWN_MAX = 5;

/**
 * Counts the logins that a query matches and the policy allows, and returns examples. Examples that differ in key,
 * login name or rule come before examples that differ only in the device.
 */
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

/** Returns the first address from which a login to the device meets the condition `where` of the query. */
function addressOf(grant: Grant, device: AccessDevice, { where }: QueriedAccess): string | undefined {
  const { key, login, rule, addresses } = grant;
  if (!where) return addresses[0];
  return addresses.find((address) => booleanOf("where", where({ key, login, address, device, rule })));
}

/**
 * Returns examples of refused logins for the first few keys, with the reason. For each key, prefers a login name and a
 * device that the key allows.
 */
function refusedExamples({ access: { policy, evaluated } }: QueriedAccess): PolicyCounterexample[] {
  const [address] = evaluated.addresses;
  return policy.keys.slice(0, SHOWN_MAX).flatMap((key) => {
    const device =
      policy.devices.find((candidate) => filterMatches(key.filter, candidate)) ?? policy.devices[0];
    if (!device || address === undefined) return [];
    const admits = (name: string) => keyAdmits({ username: key.username, filter: {} }, device, name);
    const login = evaluated.logins.find(admits) ?? evaluated.logins[0] ?? "";
    const { fingerprint } = key;
    const { deniedBy, rule } = explain(policy, { fingerprint, login, address, uid: device.uid });
    // `deniedBy` is undefined if the login is allowed but does not meet the condition `where` of the query.
    if (deniedBy === undefined || deniedBy === "key") return [];
    return [{ ...example(key, login, address, device, rule), deniedBy }];
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

const DAY_MS = 86_400_000;
const NAMED_MAX = 5;

const memberList = z.array(z.object({ email: z.string(), role: z.string() }));
const apiKeyList = z.array(z.object({ name: z.string(), expiresIn: z.number(), createdAt: z.string() }));
const lifeLimit = z.strictObject({ withinDays: z.number().positive() });

function exactlyOneOwner(subject: unknown, args: readonly unknown[]): Judgment {
  if (args.length > 0) throw new TypeError("exactlyOneOwner(): takes no arguments");
  const members = read(
    memberList,
    subject,
    "exactlyOneOwner(): needs the members that the policy test receives",
  );
  const owners = members.filter(({ role }) => role === "owner").map(({ email }) => email);
  const message =
    owners.length === 0 ? "there is no owner" : `${counted(owners.length, "owner")}: ${named(owners)}`;
  return { holds: owners.length === 1, message };
}

function everyKeyExpires(subject: unknown, [limit, ...more]: readonly unknown[]): Judgment {
  if (more.length > 0) throw new TypeError("everyKeyExpires(): takes at most one limit");
  const keys = read(
    apiKeyList,
    subject,
    "everyKeyExpires(): needs the apiKeys that the policy test receives",
  );
  const days =
    limit === undefined
      ? undefined
      : read(lifeLimit, limit, "everyKeyExpires(): takes { withinDays: a positive number }").withinDays;
  const unlimited = keys.filter(({ expiresIn }) => expiresIn <= 0);
  const tooLong = keys.filter(({ expiresIn, createdAt }) => {
    const lifeMs = expiresIn * 1000 - Date.parse(createdAt);
    return expiresIn > 0 && days !== undefined && !(lifeMs <= days * DAY_MS);
  });
  const fault = (some: typeof keys, how: string) =>
    some.length > 0
      ? [`${counted(some.length, "API key")} ${how}: ${named(some.map(({ name }) => name))}`]
      : [];
  const faults = [
    ...fault(unlimited, "without an expiry date"),
    ...fault(tooLong, `valid for more than ${days} days`),
  ];
  const message = faults.length > 0 ? faults.join("; ") : `all API keys expire: ${keys.length}`;
  return { holds: faults.length === 0, message, vacuous: none(keys, "API key") };
}

function toSatisfy(subject: unknown, args: readonly unknown[]): Judgment {
  const { predicate, what } = predicateOf("toSatisfy", args);
  const holds = booleanOf("toSatisfy(): the predicate", predicate(subject));
  const text = what === undefined ? "" : `: ${what}`;
  return { holds, message: `the predicate is ${holds}${text}` };
}

function toAllSatisfy(subject: unknown, args: readonly unknown[]): Judgment {
  const { predicate, what } = predicateOf("toAllSatisfy", args);
  if (!Array.isArray(subject)) throw new TypeError("toAllSatisfy(): needs a list");
  const list: readonly unknown[] = subject;
  const others = list.filter((item) => !booleanOf("toAllSatisfy(): the predicate", predicate(item)));
  const text = what === undefined ? "" : ` (${what})`;
  const message =
    others.length === 0
      ? `the predicate is true for all ${list.length}${text}`
      : `the predicate is false for ${others.length} of ${list.length}${text}: ${named(others.map(nameOf))}`;
  return { holds: others.length === 0, message, vacuous: none(list, "element") };
}

function predicateOf(matcher: string, [predicate, what, ...more]: readonly unknown[]) {
  if (typeof predicate !== "function" || more.length > 0 || !["string", "undefined"].includes(typeof what)) {
    throw new TypeError(`${matcher}(): takes a function and an optional description`);
  }
  return { predicate: predicate as (value: unknown) => unknown, what: what as string | undefined };
}

function read<T>(schema: z.ZodType<T>, value: unknown, otherwise: string): T {
  const result = schema.safeParse(value);
  if (!result.success) throw new TypeError(otherwise);
  return result.data;
}

const none = (list: readonly unknown[], noun: string): string | undefined =>
  list.length === 0 ? `there is no ${noun}` : undefined;

const named = (names: readonly string[]): string => firstOf(names, NAMED_MAX);

/** Returns a display name for a list element: its name, e-mail address or id. */
function nameOf(item: unknown): string {
  const { name, email, id } = (typeof item === "object" ? (item ?? {}) : {}) as Record<string, unknown>;
  const own = [name, email, id].find((candidate) => typeof candidate === "string" && candidate !== "");
  return own === undefined ? inspect(item, { depth: 1, breakLength: Number.POSITIVE_INFINITY }) : String(own);
}
