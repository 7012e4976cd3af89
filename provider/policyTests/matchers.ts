import { inspect } from "node:util";
import {
  type Access,
  type AccessDevice,
  type AccessKey,
  type AccessSubject,
  type Grant,
  grantsOf,
  isPrincipal,
  type Outcome,
  type Principal,
  subjectFacts,
} from "@gatehouse-access/sdk/policy";
import { DAY, HOUR, MINUTE } from "@gatehouse-access/sdk/times";
import { z } from "zod";
import { counted, firstOf } from "../words.ts";
import type { MatcherName } from "./api/running.ts";
import type { Decision } from "./api/types.ts";
import { type QueriedAccess, queriedAccess, readNetworks, readQuery, within } from "./queriedAccess.ts";
import type { EvaluatedCases, PolicyCounterexample } from "./results.ts";

/** The result of a matcher before negation. If the assertion uses `.not`, the caller negates the result. */
interface Judgment {
  readonly holds: boolean;
  readonly message: string;
  readonly counterexamples?: readonly PolicyCounterexample[];
  readonly cases?: number;
  readonly evaluated?: EvaluatedCases;
  /**
   * The reason why the result proves nothing, for example because the query matches no key. Undefined if the result is
   * meaningful.
   */
  readonly vacuous?: string | undefined;
}

/**
 * Evaluates a matcher. If `negated` is true, the result omits examples of refused logins. Throws TypeError for an
 * invalid subject or invalid arguments.
 */
type Judge = (subject: unknown, args: readonly unknown[], negated: boolean) => Judgment;

export const matchers: Readonly<Record<MatcherName, Judge>> = {
  toAllow,
  toRequireApproval,
  onlyFrom,
  toExpireWithin,
  exactlyOneOwner,
  everyKeyExpires,
  toSatisfy,
  toAllSatisfy,
};

/**
 * Returns the result of a predicate.
 * @throws TypeError if the result is not a boolean. For example, a promise would always be treated as true.
 */
function booleanOf(predicate: string, result: unknown): boolean {
  if (typeof result === "boolean") return result;
  throw new TypeError(
    `${predicate} must return true or false synchronously, but returned ${inspect(result)}`,
  );
}

function toAllow(subject: unknown, [query, ...more]: readonly unknown[], negated: boolean): Judgment {
  if (more.length > 0) throw new TypeError("toAllow() takes exactly one query");
  const queried = queriedAccess(accessOf("toAllow", subject), readQuery("toAllow", query));
  const { count, examples } = allowedCases(queried);
  if (count > 0) {
    if (!negated && allowedCases(queried, hasOutcome("unknown")).count === count)
      throw new Error(
        "toAllow(): the service does not list the users' SSH keys, so the test cannot check the login",
      );
    return { ...found(queried, count), holds: true, counterexamples: examples };
  }
  return {
    ...found(queried, 0),
    holds: false,
    message: nothingAllowed(queried),
    counterexamples: negated ? [] : refusedExamples(queried),
    vacuous: missingOf(queried),
  };
}

function toRequireApproval(subject: unknown, [query, ...more]: readonly unknown[]): Judgment {
  if (more.length > 0) throw new TypeError("toRequireApproval() takes exactly one query");
  const access = accessOf("toRequireApproval", subject);
  const queried = queriedAccess(access, readQuery("toRequireApproval", query));
  const allowed = allowedCases(queried);
  if (allowed.count === 0) {
    const message = nothingAllowed(queried);
    return { ...found(queried, 0), holds: false, message, vacuous: message };
  }
  const unknown = allowedCases(queried, hasOutcome("unknown"));
  if (unknown.count > 0) {
    throw new Error(
      "toRequireApproval(): the service does not list the users' SSH keys, so the test cannot check the login",
    );
  }
  const { count, examples } = allowedCases(queried, hasOutcome("allow"));
  if (count > 0) {
    const message = `${count} of ${counted(allowed.count, "allowed case")} need no approval`;
    return { ...found(queried, count), message, holds: false, counterexamples: examples };
  }
  return {
    ...found(queried, 0),
    holds: true,
    message: "all allowed cases need an approval",
    counterexamples: [],
  };
}

function onlyFrom(subject: unknown, [given, query = {}, ...more]: readonly unknown[]): Judgment {
  if (more.length > 0) throw new TypeError("onlyFrom() takes networks and a query");
  const access = accessOf("onlyFrom", subject);
  const networks = readNetworks("onlyFrom", given);
  const read = readQuery("onlyFrom", query);
  if (read.from)
    throw new TypeError(
      "onlyFrom() accepts no field from in its query: pass the networks as the first argument",
    );
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

function toExpireWithin(subject: unknown, [duration, query = {}, ...more]: readonly unknown[]): Judgment {
  if (more.length > 0) throw new TypeError("toExpireWithin() takes a duration and a query");
  const access = accessOf("toExpireWithin", subject);
  const limit = access.time.getTime() + durationOf("toExpireWithin", duration);
  const queried = queriedAccess(access, readQuery("toExpireWithin", query));
  const allowed = allowedCases(queried).count;
  const lasts = ({ until }: Grant) => until === undefined || Date.parse(until) > limit;
  const { count, examples } = allowedCases(queried, lasts);
  if (count > 0) {
    const message = `${count} of ${counted(allowed, "allowed case")} ${count === 1 ? "does" : "do"} not expire within ${duration}`;
    return { ...found(queried, count), holds: false, message, counterexamples: examples };
  }
  const vacuous = allowed > 0 ? undefined : nothingAllowed(queried);
  return {
    ...found(queried, 0),
    holds: true,
    message: `all allowed cases expire within ${duration}`,
    vacuous,
  };
}

const DURATION = /^([1-9][0-9]{0,5})([mhd])$/;
const UNITS_MS: Readonly<Record<string, number>> = { m: MINUTE, h: HOUR, d: DAY };

/**
 * Parses a duration such as `30m`, `24h` or `14d`, and returns it in milliseconds. @throws TypeError for an invalid
 * duration
 */
function durationOf(matcher: string, given: unknown): number {
  const [, count, unit = ""] = (typeof given === "string" && DURATION.exec(given)) || [];
  const unitMs = UNITS_MS[unit];
  if (unitMs !== undefined) return Number(count) * unitMs;
  throw new TypeError(
    `${matcher}() takes a duration in minutes, hours or days, such as "30m", "24h" or "14d"`,
  );
}

function found({ access }: QueriedAccess, cases: number) {
  const { decider, policy, evaluated } = access;
  const { keys = 0, principals } = decider.counts;
  const subjects = { keys, ...(principals !== undefined && { principals }) };
  return {
    message: cases === 1 ? "1 case is allowed" : `${cases} cases are allowed`,
    cases,
    evaluated: { ...subjects, devices: policy.devices.length, ...evaluated },
  };
}

const missingOf = ({ missing }: QueriedAccess): string | undefined =>
  missing.length > 0 ? `matched no ${missing.join(" and no ")}` : undefined;

const nothingAllowed = (queried: QueriedAccess): string => {
  const missing = missingOf(queried);
  return `no matching login is allowed${missing === undefined ? "" : `: the query ${missing}`}`;
};

/**
 * Returns the access that an assertion checks. Checks that the fields exist instead of using `instanceof`, since a
 * policy file may import a different copy of the class `Access`.
 */
function accessOf(matcher: string, subject: unknown): Pick<Access, "policy" | "evaluated" | "time"> {
  const { policy, evaluated, time = new Date() } = (subject ?? {}) as Partial<Access>;
  if (!policy || !evaluated)
    throw new TypeError(`${matcher}() needs the access that the policy test receives`);
  return { policy, evaluated, time };
}

const SHOWN_MAX = 5;

const hasOutcome = (wanted: Outcome) => (grant: Grant) => grant.outcome === wanted;

/**
 * Counts the allowed logins that a query matches, and returns examples. Examples that differ in key, login name or rule
 * come before examples that differ only in the device.
 * @param isCounted returns true for the grants to count; default: all grants
 */
function allowedCases(queried: QueriedAccess, isCounted: (grant: Grant) => boolean = () => true) {
  const devices = new Map(queried.access.policy.devices.map((device) => [device.uid, device]));
  const [first, more]: [PolicyCounterexample[], PolicyCounterexample[]] = [[], []];
  let count = 0;
  for (const grant of grantsOf(queried.access)) {
    if (!isCounted(grant)) continue;
    let known = first;
    for (const uid of grant.devices) {
      const device = devices.get(uid);
      const address = device && addressOf(grant, device, queried);
      if (!device || address === undefined) continue;
      count += 1;
      if (known.length < SHOWN_MAX) known.push(example(grant, address, device));
      known = more;
    }
  }
  return { count, examples: [...first, ...more].slice(0, SHOWN_MAX) };
}

/** Returns the first address from which a login to the device meets the condition `where` of the query. */
function addressOf(grant: Grant, device: AccessDevice, { where }: QueriedAccess): string | undefined {
  if (!where) return grant.addresses[0];
  return grant.addresses.find((address) =>
    booleanOf("where", where(new WrittenDecision(grant, address, device))),
  );
}

class WrittenDecision implements Decision {
  readonly login: string;
  readonly address: string;
  readonly device: AccessDevice;
  readonly rule: Decision["rule"];
  readonly policy: Decision["policy"];
  readonly outcome: Decision["outcome"];
  readonly until: Decision["until"];
  readonly #subject: AccessSubject;

  constructor(grant: Grant, address: string, device: AccessDevice) {
    this.#subject = grant.subject;
    this.login = grant.login;
    this.address = address;
    this.device = device;
    this.rule = grant.rule;
    this.policy = grant.policy;
    this.outcome = grant.outcome;
    this.until = grant.until ?? null;
  }

  get key(): AccessKey {
    if (isPrincipal(this.#subject))
      throw new Error("the namespace authorizes logins by access policies; use `principal` instead of `key`");
    return this.#subject;
  }

  get principal(): Principal {
    if (isPrincipal(this.#subject)) return this.#subject;
    throw new Error("the namespace authorizes logins by public keys; use `key` instead of `principal`");
  }
}

/**
 * Returns examples of refused logins for the first few subjects, with the reasons for the refusals. If a key allows
 * some of the logins and devices, the example for this key uses one of these, so that it shows a refusal by the
 * firewall instead of a refusal by the key.
 */
function refusedExamples({ access: { decider, evaluated, time: at } }: QueriedAccess) {
  const [address] = evaluated.addresses;
  return decider.subjects.slice(0, SHOWN_MAX).flatMap((subject): PolicyCounterexample[] => {
    const tried = decider.exampleFor(subject, evaluated.logins);
    if (address === undefined || !tried) return [];
    const { login, device } = tried;
    const { deniedBy, rule, policy } = decider.decide(subject, { login, address, uid: device.uid, at });
    // `deniedBy` is undefined if the login is allowed but does not meet the condition `where` of the query.
    if (deniedBy === undefined) return [];
    return [{ ...example({ subject, login, rule, policy, outcome: "deny" }, address, device), deniedBy }];
  });
}

function example(
  { subject, login, rule, policy, outcome, until }: Omit<Grant, "addresses" | "devices">,
  address: string,
  device: AccessDevice,
): PolicyCounterexample {
  const { id, name, kind } = subjectFacts(subject);
  return {
    login,
    address,
    device: { uid: device.uid, name: device.name },
    ...(kind === "key" ? { key: { fingerprint: id, name } } : { principal: { id, name, kind } }),
    rule: rule && { id: rule.id, action: rule.action, priority: rule.priority },
    ...(policy && { policy: { id: policy.id, name: policy.name, action: policy.action } }),
    ...(kind !== "key" && outcome !== "deny" && { outcome }),
    ...(outcome !== "deny" && { until: until ?? null }),
  };
}

const NAMED_MAX = 5;

const memberList = z.array(z.object({ email: z.string(), role: z.string() }));
const apiKeyList = z.array(z.object({ name: z.string(), expiresIn: z.number(), createdAt: z.string() }));
const lifeLimit = z.strictObject({ withinDays: z.number().positive() });

function exactlyOneOwner(subject: unknown, args: readonly unknown[]): Judgment {
  if (args.length > 0) throw new TypeError("exactlyOneOwner() takes no arguments");
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
  if (more.length > 0) throw new TypeError("everyKeyExpires() takes at most one limit");
  const keys = read(
    apiKeyList,
    subject,
    "everyKeyExpires(): needs the apiKeys that the policy test receives",
  );
  const days =
    limit === undefined
      ? undefined
      : read(lifeLimit, limit, "everyKeyExpires() takes { withinDays: a positive number }").withinDays;
  const unlimited = keys.filter(({ expiresIn }) => expiresIn <= 0);
  const tooLong = keys.filter(({ expiresIn, createdAt }) => {
    const lifeMs = expiresIn * 1000 - Date.parse(createdAt);
    return expiresIn > 0 && days !== undefined && !(lifeMs <= days * DAY);
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
    throw new TypeError(`${matcher}() takes a function and an optional description`);
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
