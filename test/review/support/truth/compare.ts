import { isDeepStrictEqual } from "node:util";
import type { ReviewedAccess } from "../../../../provider/privileges/accessLines.ts";
import type { NamespaceReview } from "../../../../provider/review/report/review.ts";
import type { NamespacePolicy } from "../../../../sdk/policy/index.ts";
import { decide } from "../../../policy/oracle.ts";
import { ADDRESSES, type Decisions, JOBS, LOGINS, type Login, loginOf } from "./TruthService.ts";

/** The part of a report that states changed access, roles and settings. */
export type Stated = Pick<NamespaceReview, "access" | "members" | "workloads" | "apiKeys" | "settings">;

/** The login names and addresses that the product evaluates. */
export interface Evaluated {
  readonly logins: readonly string[];
  readonly addresses: readonly string[];
}

/** Throws an error unless the service is asked for all logins and addresses that the product evaluates. */
export function requireAsked({ logins, addresses }: Evaluated): void {
  const others = [
    ...logins.filter((login) => !LOGINS.includes(login)),
    ...addresses.filter((address) => !ADDRESSES.includes(address)),
  ];
  if (others.length > 0)
    throw new Error(`the product also evaluates ${others.join(", ")}; add them to the test`);
}

function* loginsIn({ keys, logins, addresses, devices }: ReviewedAccess): Generator<Login> {
  for (const { fingerprint } of keys) {
    for (const login of logins) {
      for (const address of addresses) {
        for (const uid of devices) yield loginOf(fingerprint, login, address, uid);
      }
    }
  }
}

const some = (title: string, items: readonly string[]): string[] =>
  items.length === 0 ? [] : [`${items.length} ${title}: ${items.slice(0, 4).join("; ")}`];

/** Returns the texts that only one of two lists contains. */
function listDifferences(title: string, real: readonly string[], stated: readonly string[]): string[] {
  const [left, right] = [new Set(real), new Set(stated)];
  return [
    ...some(
      `${title} by the decisions, not stated`,
      [...left].filter((one) => !right.has(one)),
    ),
    ...some(
      `stated as ${title}, not by the decisions`,
      [...right].filter((one) => !left.has(one)),
    ),
  ];
}

/** Compares the stated changes of access with the difference between the decisions of the service. */
function accessDifferences(
  access: readonly ReviewedAccess[],
  evaluated: Evaluated,
  before: Decisions,
  after: Decisions,
): string[] {
  requireAsked(evaluated);
  const [names, from] = [new Set(evaluated.logins), new Set(evaluated.addresses)];
  const counts = (login: Login) => {
    const [, name = "", address = ""] = login.split(" ");
    return names.has(name) && from.has(address);
  };
  const only = (these: Decisions, those: Decisions) =>
    [...these.allowed].filter((login) => !those.allowed.has(login) && counts(login));
  // Access that starts later is compared after the clock has moved.
  const present = access.filter(({ starts }) => starts === undefined);
  const stated = (change: ReviewedAccess["change"]) =>
    present.filter((line) => line.change === change).flatMap((line) => [...loginsIn(line)]);
  const isWrong = (login: Login) => !before.allowed.has(login) || !after.allowed.has(login);
  return [
    ...listDifferences("logins gained", only(after, before), stated("gained")),
    ...listDifferences("logins lost", only(before, after), stated("lost")),
    ...some("logins altered, not allowed before and after", stated("altered").filter(isWrong)),
  ];
}

/** True if access or a role that ends at a time has not ended. */
const lasts = (until: string | null | undefined): boolean => !until || Date.parse(until) > Date.now();

/** Returns the roles of all subjects of a kind before and after a change, by name. */
function rolesOf(kind: string, before: Decisions, after: Decisions) {
  const subjects = new Set([...before.roles.keys(), ...after.roles.keys()]);
  return [...subjects]
    .filter((subject) => subject.startsWith(`${kind} `))
    .map((subject) => {
      const name = subject.slice(kind.length + 1);
      return { name, from: before.roles.get(subject), to: after.roles.get(subject) };
    });
}

function memberDifferences({ members }: Stated, before: Decisions, after: Decisions): string[] {
  const real = rolesOf("member", before, after)
    .filter(({ from, to }) => from !== to)
    .map(({ name, from, to }) => `${name} ${from} → ${to}`);
  const stated = members.flatMap((change) => {
    // The service lists memberships that have ended, so their removal is stated. It gives and takes no role.
    const had = before.roles.get(`member ${change.email}`);
    const from = change.change === "removed" ? had : lasts(change.untilBefore) ? change.from : undefined;
    const to = lasts(change.until) ? change.to : undefined;
    return from === to ? [] : [`${change.email} ${from} → ${to}`];
  });
  return listDifferences("member roles", real, stated);
}

function apiKeyDifferences({ apiKeys }: Stated, before: Decisions, after: Decisions): string[] {
  const keys = rolesOf("api key", before, after).map(({ name: created, from, to }) => ({
    from,
    to,
    name: (after.apiKeys.get(created) ?? before.apiKeys.get(created)) as string,
  }));
  const given = keys.filter(({ from, to }) => to !== undefined && from !== to);
  const lost = keys.filter(({ to }) => to === undefined).map(({ name, from }) => `${name} ${from}`);
  const removed = apiKeys
    .filter(({ change }) => change === "removed")
    .map(({ name, from }) => `${name} ${from}`);
  // A replaced key may keep working for an overlap.
  const replaced = apiKeys
    .filter(({ change }) => change === "replaced")
    .map(({ name, from }) => `${name} ${from}`);
  const isStated = (key: string) => removed.includes(key) || replaced.includes(key);
  return [
    ...listDifferences(
      "API key roles given",
      given.map(({ name, to }) => `${name} ${to}`),
      apiKeys.filter(({ change }) => change !== "removed").map(({ name, to }) => `${name} ${to}`),
    ),
    ...some(
      "API keys removed by the decisions, not stated",
      lost.filter((key) => !isStated(key)),
    ),
    ...some(
      "API keys stated as removed, not by the decisions",
      removed.filter((key) => !lost.includes(key)),
    ),
  ];
}

const ROLES = ["observer", "operator", "administrator"];

/** True if required claims match the claims of a job. The claims of {@link RANDOM} contain at most one wildcard. */
const accepts = (
  required: Readonly<Record<string, string>>,
  job: Readonly<Record<string, string>>,
): boolean =>
  Object.entries(required).every(([name, value]) =>
    value.endsWith("*") ? job[name]?.startsWith(value.slice(0, -1)) : job[name] === value,
  );

function workloadDifferences({ workloads }: Stated, before: Decisions, after: Decisions): string[] {
  return JOBS.flatMap((job) => {
    const subject = `job ${job.environment}`;
    const [from, to] = [before.roles.get(subject), after.roles.get(subject)];
    const giving = workloads.filter((change) => change.accepts && accepts(change.accepts.claims, job));
    const losing = workloads.filter((change) => {
      const claims = (change.acceptedBefore ?? change.accepts)?.claims;
      return change.change !== "added" && (!claims || accepts(claims, job));
    });
    const isStated =
      from === to ||
      giving.some((change) => change.to === to && change.to !== undefined) ||
      losing.some((change) => change.from === from);
    const higher = giving.filter((change) => ROLES.indexOf(change.to ?? "") > ROLES.indexOf(to ?? ""));
    return [
      ...(isStated ? [] : [`job ${job.environment}: ${from} → ${to} by the decisions, not stated`]),
      ...higher.map(
        (change) => `job ${job.environment}: ${to} by the decisions, stated ${JSON.stringify(change)}`,
      ),
    ];
  });
}

/** The settings without values that the service omits. */
const DEFAULTS: Readonly<Record<string, unknown>> = {
  sessionRecord: true,
  deviceProof: "optional",
  sessionMaxMinutes: 0,
  sessionIdleMinutes: 0,
  sshForwarding: [],
  connectionAnnouncement: "",
};

function settingDifferences({ settings }: Stated, before: Decisions, after: Decisions): string[] {
  const changes = Object.entries(DEFAULTS).flatMap(([setting, usual]) => {
    const [from, to] = [before, after].map(({ settings: all }) => all[setting] ?? usual);
    return isDeepStrictEqual(from, to) ? [] : [{ setting, from, to }];
  });
  const text = ({ setting, from, to }: (typeof changes)[number]) =>
    `${setting} ${JSON.stringify(from)} → ${JSON.stringify(to)}`;
  const opened = settings.filter(({ setting, effect, to }) => {
    const known = before.settings[setting] as readonly unknown[] | undefined;
    return (
      setting === "sshForwarding" &&
      effect !== "opens" &&
      (to as readonly unknown[]).some((rule) => !known?.some((other) => isDeepStrictEqual(rule, other)))
    );
  });
  const weakened = settings.filter(
    ({ setting, from, to, effect }) =>
      effect !== "weakens" &&
      ((setting === "sessionRecord" && to === false) ||
        (setting === "deviceProof" && to === "optional") ||
        (setting.endsWith("Minutes") && (to === 0 || (from !== 0 && Number(to) > Number(from))))),
  );
  return [
    ...listDifferences("settings", changes.map(text), settings.map(text)),
    ...some("added forwarding rules not stated as opened", opened.map(text)),
    ...some("weakened settings not stated as weakened", weakened.map(text)),
  ];
}

/** Returns the differences between a report and the decisions of the service before and after. */
export function differences(
  stated: Stated,
  evaluated: Evaluated,
  before: Decisions,
  after: Decisions,
): string[] {
  return [
    ...(stated.access
      ? accessDifferences(stated.access, evaluated, before, after)
      : ["the access is not known"]),
    ...memberDifferences(stated, before, after),
    ...apiKeyDifferences(stated, before, after),
    ...workloadDifferences(stated, before, after),
    ...settingDifferences(stated, before, after),
  ];
}

/** Returns the policy without the objects that have ended, for the second implementation of the rules. */
function lasting(policy: NamespacePolicy): NamespacePolicy {
  const owners = new Set(policy.members?.filter(({ expiresAt }) => lasts(expiresAt)).map(({ id }) => id));
  return {
    ...policy,
    keys: policy.keys.filter(
      ({ expiresAt, owner }) => lasts(expiresAt) && (owner === undefined || owners.has(owner)),
    ),
    rules: policy.rules.filter(({ expiresAt }) => lasts(expiresAt)),
  };
}

/**
 * Compares the ends and starts of access that a review stated with the decisions of the service at a later time.
 * @param policy the policy before the reviewed change
 * @param after the decisions after the change
 * @param later the decisions now. Since `after`, nothing has changed but the time.
 */
export function laterDifferences(
  access: readonly ReviewedAccess[],
  policy: NamespacePolicy,
  after: Decisions,
  later: Decisions,
): string[] {
  const started = access.filter(({ starts }) => starts !== undefined && !lasts(starts));
  const starting = new Set(started.flatMap((line) => [...loginsIn(line)]));
  const present = access.filter(({ change, starts }) => change !== "lost" && starts === undefined);
  const ended = present.filter(({ until }) => !lasts(until)).flatMap((line) => [...loginsIn(line)]);
  const kept = [...present, ...started]
    .filter(({ until }) => lasts(until))
    .flatMap((line) => [...loginsIn(line)]);
  const old = lasting(policy);
  /** True if the login would be allowed now without the reviewed change. */
  const isOwed = (text: Login) => {
    const [fingerprint = "", login = "", address = "", uid = ""] = text.split(" ");
    const isKnown = old.devices.some((device) => device.uid === uid);
    return isKnown && decide(old, { fingerprint, login, address, uid }).allowed;
  };
  const opened = [...later.allowed].filter((login) => !after.allowed.has(login) && !starting.has(login));
  return [
    ...some(
      "logins opened later, not stated",
      opened.filter((login) => !isOwed(login)),
    ),
    ...some(
      "logins stated with an end that has passed, still allowed",
      ended.filter((login) => later.allowed.has(login) && !starting.has(login)),
    ),
    ...some(
      "logins stated without a passed end, no longer allowed",
      kept.filter((login) => !later.allowed.has(login)),
    ),
  ];
}
