import { isIP } from "node:net";
import type { Client } from "@gatehouse-access/sdk";
import {
  type AccessDevice,
  type AccessKey,
  type AccessMode,
  type AccessPolicy,
  type AccessRule,
  type Decider,
  deciderOf,
  explain,
  explainIdentity,
  firewallDecides,
  keyAdmits,
  type Principal,
  readAddress,
  subjectFacts,
  subjectsOf,
} from "@gatehouse-access/sdk/policy";
import { reason } from "../access/explanation.ts";
import { reason as identityReason } from "../access/identityExplanation.ts";
import type { NamespaceState } from "../namespace/namespaceState.ts";
import { acceptedDevices, type DeviceState } from "../resources/device.ts";
import type { Device } from "../service/listings.ts";
import { counted, instantText, ruleText } from "../words.ts";
import type { ComparedSessions, LoginDifference, Verification } from "./verification.ts";

type ListedSession = Awaited<ReturnType<Client["getSessions"]>>[number];

/**
 * A session, as the service returns it. Some servers do not return the device of a session if the device was deleted.
 */
export type Session = Omit<ListedSession, "device"> & { readonly device?: { readonly name: string } | null };

const deviceNameOf = ({ device, deviceUid }: Session): string => device?.name ?? deviceUid;

/** Returns the start of a session in UTC. A server can return the time with a different offset. */
const startOf = ({ startedAt }: Session): string => new Date(startedAt).toISOString();

/**
 * Maximum time between the decision about a login and the start of its session, in milliseconds. The service stores the
 * session after the decision. The clocks of several instances can also differ.
 */
const DECISION_LAG = 10_000;

/** The data that is required to compare the sessions of a namespace with its policy. */
export interface ComparisonInput {
  readonly estate: Pick<NamespaceState, "policy" | "accessUnknown"> & {
    readonly devices: readonly Pick<DeviceState, "uid" | "status">[];
  };
  /** Devices that are not in the list of devices, such as containers. */
  readonly otherDevices: readonly Device[];
  /** The reasons why devices outside of the list could not be read, by the uid of the device. */
  readonly unreadDevices: ReadonlyMap<string, string>;
  /** The sessions that started after the last change to the policy, latest first. */
  readonly sessions: readonly Session[];
  /** The time of the last change to the policy; undefined if it is not known. */
  readonly lastChange: Date | undefined;
  /**
   * True if the server stores the key of each login that uses a key. A session without a key is then a login with a
   * password.
   */
  readonly storesKeys: boolean;
}

type Comparison = Pick<Verification, "compared" | "unauthenticated" | "differences" | "notEvaluated">;

/**
 * The kind of session data that a comparison with the policy uses. {@link ComparedSessions} contains a count for each
 * kind.
 */
type Basis = Exclude<keyof ComparedSessions, "total">;

/** The data of a session that identifies who logged in. */
interface LoginBasis {
  readonly basis: Basis;
  /**
   * The fingerprint of the key, or the id of the user or service account. Empty if the session contains neither of
   * them.
   */
  readonly subject: string;
  /**
   * True if the server stores a session only after the policy allowed the login. If false, the server may also store
   * sessions whose login it refuses.
   */
  readonly isAdmitted: boolean;
}

/** A login to predict. */
interface Login extends LoginBasis {
  readonly login: string;
  readonly address: string;
  readonly device: AccessDevice;
  readonly at: Date;
}

/** The policy's decision about a login. `unknown`: the data of the session is not sufficient for a decision. */
type Prediction =
  | { readonly decision: "allow" }
  | { readonly decision: "deny" | "unknown"; readonly reason: string };

const ALLOWED: Prediction = { decision: "allow" };

/**
 * Compares the logins that a service allowed with the policy of the namespace. A login matches the policy if the policy
 * allows it at the start of the session. A login also matches if the policy allows it shortly before, since the service
 * decides before the session starts.
 */
export function compareSessions(input: ComparisonInput): Comparison {
  const { estate, sessions } = input;
  const comparison = comparisonOf(input);
  const predict = predictor(input, comparison);
  const names = new Map(
    subjectsOf(estate.policy)
      .map(subjectFacts)
      .map(({ id, name }) => [id, name]),
  );
  const counts = { total: 0, byKey: 0, byUser: 0, byFirewall: 0, weakly: 0 };
  const differences: LoginDifference[] = [];
  const open = new Map<string, Session[]>();
  let unauthenticated = 0;
  for (const session of sessions) {
    const of = comparison.basisOf(session);
    if (!session.authenticated && !of.isAdmitted) {
      unauthenticated += 1;
      continue;
    }
    const prediction = predict(session, of);
    if (prediction.decision === "unknown") {
      const alike = open.get(prediction.reason) ?? [];
      alike.push(session);
      open.set(prediction.reason, alike);
      continue;
    }
    counts.total += 1;
    counts[of.basis] += 1;
    if (prediction.decision === "deny") differences.push(differenceOf(session, of, prediction.reason, names));
  }
  const notEvaluated = [...open].map(([why, alike]) => notComparedSentence(alike, why));
  return { compared: counts, unauthenticated, differences, notEvaluated };
}

/** Returns a function that predicts the policy's decision about the login of a session. */
function predictor(
  input: ComparisonInput,
  comparison: ModeComparison,
): (session: Session, of: LoginBasis) => Prediction {
  const { estate, lastChange, unreadDevices } = input;
  const findDevice = deviceFinder(input);
  const evaluate = evaluator(comparison);
  return (session, of) => {
    if (estate.accessUnknown !== undefined) return unknown(estate.accessUnknown);
    const device = findDevice(session.deviceUid);
    if (device === undefined)
      return unknown(unreadDevices.get(session.deviceUid) ?? "the device no longer exists");
    const address = normalAddress(session.ipAddress);
    if (address === undefined) return unknown("the address of the client is not an IP address");
    const predictAt = (at: Date) =>
      device === "not accepted"
        ? denied("the device is not accepted")
        : evaluate({ ...of, login: session.username, address, device, at });
    const at = new Date(session.startedAt);
    const prediction = predictAt(at);
    if (prediction.decision !== "deny") return prediction;
    const decidedAt = new Date(at.getTime() - DECISION_LAG);
    if (lastChange && decidedAt < lastChange) {
      return unknown(
        `the policy refuses the login, because ${prediction.reason}. But the service may have decided before the last change of the policy`,
      );
    }
    return predictAt(decidedAt).decision === "allow" ? ALLOWED : prediction;
  };
}

const denied = (why: string): Prediction => ({ decision: "deny", reason: why });
const unknown = (why: string): Prediction => ({ decision: "unknown", reason: why });

/** Returns an address in the form that patterns match; undefined for a string that is not an address. */
const normalAddress = (text: string): string | undefined =>
  isIP(text) === 0 || text.includes("%") ? undefined : readAddress(text).toString();

/** Returns a function that finds an accepted device by its uid. */
function deviceFinder({ estate, otherDevices }: ComparisonInput) {
  const accepted = new Map(
    [...estate.policy.devices, ...acceptedDevices(otherDevices)].map((device) => [device.uid, device]),
  );
  const known = new Set(
    [...estate.devices, ...otherDevices].flatMap(({ uid, status }) => (status === "removed" ? [] : [uid])),
  );
  return (uid: string): AccessDevice | "not accepted" | undefined =>
    accepted.get(uid) ?? (known.has(uid) ? "not accepted" : undefined);
}

/** A comparison of logins with a policy, for one access mode. */
interface ModeComparison {
  readonly basisOf: (session: Session) => LoginBasis;
  /**
   * Returns the number of expiry times that are not later than the given time. Between two expiry times, the decision
   * about a login does not change.
   */
  readonly periodOf: (at: Date) => number;
  readonly predict: (login: Login) => Prediction;
}

/** Creates the comparison for each access mode. The decider of the policy determines the mode. */
const COMPARISONS: Readonly<
  Record<AccessMode, { create(input: ComparisonInput, decider: Decider): ModeComparison }>
> = { legacy: { create: byKeysAndRules }, identity: { create: byPolicies } };

function comparisonOf(input: ComparisonInput): ModeComparison {
  const decider = deciderOf(input.estate.policy);
  return COMPARISONS[decider.mode].create(input, decider);
}

/**
 * Returns a function that evaluates the policy for a login. Equal logins are evaluated only once, unless access expired
 * between them.
 */
function evaluator({ predict, periodOf }: ModeComparison): (login: Login) => Prediction {
  const known = new Map<string, Prediction>();
  return (login) => {
    const { basis, subject, login: name, address, device, at } = login;
    const question = JSON.stringify([basis, subject, name, address, device.uid, periodOf(at)]);
    const prediction = known.get(question) ?? predict(login);
    known.set(question, prediction);
    return prediction;
  };
}

function byKeysAndRules(
  { estate: { policy }, sessions, storesKeys }: ComparisonInput,
  decider: Decider<AccessKey>,
): ModeComparison {
  const periodOf = periodsOf(decider.ends, sessions);
  const admitting = new Map<string, boolean>();
  const rulesFor = ruleFilter(policy.rules);
  const keysFor = remembered((login: string) =>
    decider.subjects.filter(({ username }) => keyAdmits({ username, filter: {} }, NO_DEVICE, login)),
  );
  const keys = new Map(decider.subjects.map((key) => [key.fingerprint, key]));
  return {
    periodOf,
    basisOf({ keyFingerprint }) {
      if (keyFingerprint) return { basis: "byKey", subject: keyFingerprint, isAdmitted: true };
      return { basis: storesKeys ? "byFirewall" : "weakly", subject: "", isAdmitted: false };
    },
    predict(login) {
      if (login.basis === "byKey") return byKey(login);
      return login.basis === "weakly" ? byAnyKey(login) : byFirewall(login);
    },
  };

  function byKey({ subject, login, address, device, at }: Login): Prediction {
    const key = keys.get(subject);
    if (!key) return denied("the namespace has no public key with this fingerprint");
    const only = { ...policy, devices: [device], keys: [key], rules: rulesFor(login, address) };
    const explanation = explain(only, { fingerprint: subject, login, address, uid: device.uid, at });
    if (explanation.allowed) return ALLOWED;
    return denied(reason({ estate: { policy: only } }, { ...explanation, key, login }));
  }

  function byFirewall({ login, address, device, at }: Login): Prediction {
    const attempt = { deviceName: device.name, deviceTags: device.tags, login, sourceIp: address, at };
    const { allowed, rule } = firewallDecides(rulesFor(login, address), attempt);
    if (allowed || !rule) return ALLOWED;
    return denied(`the firewall rule ${ruleText(rule)} denies the login`);
  }

  function byAnyKey(login: Login): Prediction {
    const prediction = byFirewall(login);
    if (prediction.decision === "deny" || hasKeyFor(login)) return prediction;
    return unknown(
      "no public key admits the login, and the server does not store whether a password authenticated it",
    );
  }

  /** Returns true if any key allows a login, regardless of the client's address. */
  function hasKeyFor({ login, address, device, at }: Login): boolean {
    const question = JSON.stringify([login, device.uid, periodOf(at)]);
    const has =
      admitting.get(question) ??
      keysFor(login).some((key) => {
        const only = { ...policy, devices: [device], keys: [key], rules: [] };
        return explain(only, { fingerprint: key.fingerprint, login, address, uid: device.uid, at }).allowed;
      });
    admitting.set(question, has);
    return has;
  }
}

function byPolicies({ sessions }: ComparisonInput, decider: Decider<Principal>): ModeComparison {
  const { subjects, policies } = decider;
  const principals = new Map(subjects.map((one) => [one.id, one]));
  const uses = subjects.flatMap(({ keys = [] }) => keys.flatMap(({ consumedAt }) => consumedAt ?? []));
  return {
    periodOf: periodsOf([...decider.ends, ...uses], sessions),
    basisOf: ({ userId }) => ({
      basis: userId ? "byUser" : "weakly",
      subject: userId ?? "",
      isAdmitted: true,
    }),
    predict: (login) => (login.basis === "byUser" ? byUser(login) : byAnyPrincipal(login)),
  };

  function byUser(login: Login): Prediction {
    const principal = principals.get(login.subject);
    if (!principal) return denied("the user or service account is not a member of the namespace");
    return byPrincipal(login, policies, principal);
  }

  function byAnyPrincipal(login: Login): Prediction {
    let open: Prediction | undefined;
    for (const principal of subjects) {
      const prediction = byPrincipal(login, policies, principal);
      if (prediction.decision === "allow") return prediction;
      if (prediction.decision === "unknown") open ??= prediction;
    }
    return open ?? denied("no user and no service account may log in");
  }
}

const NO_DEVICE = { name: "", tags: [] };

/** Returns a function that caches the result for each argument. */
function remembered<T>(compute: (text: string) => T): (text: string) => T {
  const known = new Map<string, { readonly value: T }>();
  return (text) => {
    const found = known.get(text) ?? { value: compute(text) };
    known.set(text, found);
    return found.value;
  };
}

/**
 * Returns a function that selects the rules that match a login name and an address, for any device and time. With this
 * selection, the evaluation of thousands of logins tests the patterns of each rule only once for each name and each
 * address.
 */
function ruleFilter(rules: readonly AccessRule[]) {
  const matching = (
    some: readonly AccessRule[],
    login: string,
    sourceIp: string,
    ignored: Partial<AccessRule>,
  ) =>
    some.filter((rule) => {
      const always = { ...rule, ...ignored, active: true, expiresAt: undefined, filter: {} };
      const attempt = { deviceName: "", deviceTags: [], login, sourceIp, at: new Date(0) };
      return firewallDecides([always], attempt).rule !== null;
    });
  const ofAddress = remembered((address) => {
    const some = matching(rules, "", address, { username: "" });
    return remembered((login) => matching(some, login, address, { sourceIp: "" }));
  });
  return (login: string, address: string) => ofAddress(address)(login);
}

function byPrincipal(
  { login, address, device, at }: Login,
  policies: readonly AccessPolicy[],
  principal: Principal,
): Prediction {
  const explained = (keys: Principal["keys"]) => {
    const identity = { policies, principals: [{ ...principal, keys }] };
    const question = { subject: principal.id, login, address, uid: device.uid, at };
    return explainIdentity({ devices: [device], identity }, question);
  };
  const explanation = explained(keysAt(principal, at));
  if (explanation.outcome !== "deny") return ALLOWED;
  // The session does not contain the key, and the user may have deleted it since the login. In this case, only the
  // policies are evaluated.
  if (explanation.deniedBy === "key" && principal.keys?.length === 0) {
    const byPolicies = explained(undefined);
    if (byPolicies.outcome !== "deny")
      return unknown(
        `${principal.name} has no SSH key, and the server does not store the key of a login. The key may have been deleted after the login`,
      );
    return denied(identityReason(byPolicies));
  }
  return denied(identityReason(explanation));
}

/**
 * Returns the SSH keys of a principal as they were at a given time. A single-use key was valid until the login that
 * used it.
 */
const keysAt = ({ keys }: Principal, at: Date): Principal["keys"] =>
  keys?.map((key) =>
    key.consumedAt !== null && new Date(key.consumedAt) > at ? { ...key, consumedAt: null } : key,
  );

/**
 * Returns a function that counts the expiry times until a given time. Omits expiry times before the first session and
 * after the last session.
 * @param ends the times at which the decision about a login can change without a change to the policy
 */
function periodsOf(ends: readonly string[], sessions: readonly Session[]): ModeComparison["periodOf"] {
  const starts = sessions.map(({ startedAt }) => Date.parse(startedAt));
  const first = starts.reduce((least, start) => Math.min(least, start), Infinity) - DECISION_LAG;
  const last = starts.reduce((most, start) => Math.max(most, start), -Infinity);
  const times = [...new Set(ends.map((end) => Date.parse(end)))];
  const relevant = times.filter((time) => time > first && time <= last);
  return (at) => relevant.filter((time) => time <= at.getTime()).length;
}

function differenceOf(
  session: Session,
  { basis, subject }: LoginBasis,
  why: string,
  names: ReadonlyMap<string, string>,
): LoginDifference {
  const name = names.get(subject) ?? null;
  return {
    session: session.uid,
    startedAt: startOf(session),
    login: session.username,
    address: session.ipAddress,
    device: { uid: session.deviceUid, name: deviceNameOf(session) },
    key: basis === "byKey" ? { fingerprint: subject, name } : null,
    user: basis === "byUser" ? { id: subject, name } : null,
    reason: why,
  };
}

function notComparedSentence([latest, ...others]: readonly Session[], why: string): string {
  if (!latest) return why;
  const which =
    others.length === 0
      ? `The session ${latest.uid}`
      : `${counted(others.length + 1, "session")}, of which the latest is ${latest.uid}`;
  const { username, ipAddress } = latest;
  return `${which} (${username} on ${deviceNameOf(latest)} from ${ipAddress}, ${instantText(startOf(latest))}), could not be compared: ${why}`;
}
