import {
  type Access,
  type AccessChange,
  type AccessMode,
  ANY_LOGIN,
  accessChanges,
  isLaterEnd,
  type NamespacePolicy,
  type Outcome,
  otherAddressOf,
  type Principal,
  type SubjectFacts,
  subjectFacts,
} from "@gatehouse-access/sdk/policy";
import { DeviceGroups } from "../access/deviceGroups.ts";
import { changedEnd, listedTexts, withOthers } from "../model/changeTexts.ts";
import { byDevice } from "../namespace/readNamespace.ts";
import { PLAIN, type Style } from "../style.ts";
import { byText, CONDITIONS, instantText, OTHER_ADDRESSES, OTHER_LOGINS, untilText } from "../words.ts";

/** A user or service account in a report. */
export type ReviewedPrincipal = Pick<Principal, "id" | "name" | "kind">;

/**
 * A line about access. One or more keys or principals gain or lose the access, or its condition or expiry time changes.
 */
export interface ReviewedAccess {
  /**
   * The kind of change: `gained`, `lost` or `altered`. `altered`: the access is kept, but its expiry time or its
   * condition changes, such as a re-authentication.
   */
  readonly change: AccessChange["change"];
  /** The public keys. Empty in identity mode. */
  readonly keys: readonly { readonly fingerprint: string; readonly name: string }[];
  /**
   * The users and service accounts. Present only in identity mode. If the line also contains public keys, the key and
   * the principal with the same index have the same SSH key.
   */
  readonly principals?: readonly ReviewedPrincipal[];
  /** The access mode of the namespace after the change. Omitted if the mode does not change. */
  readonly newMode?: AccessMode;
  /** The outcome of the logins before the change. Present only in identity mode. */
  readonly before?: Outcome;
  /** The outcome of the logins after the change. Present only in identity mode. */
  readonly after?: Outcome;
  /**
   * The time when the gained or prolonged access starts, in RFC 3339. At this time, a deny rule expires. Omitted if the
   * access starts with the change.
   */
  readonly starts?: string;
  /**
   * The expiry time of the access after the change, in RFC 3339. Null if the access does not expire, or if it is lost.
   */
  readonly until: string | null;
  /** The expiry time of the access before the change. Null if the access did not expire, or if it is gained. */
  readonly untilBefore: string | null;
  readonly logins: readonly string[];
  /** True if `logins` contains all evaluated login names. */
  readonly anyLogin: boolean;
  readonly addresses: readonly string[];
  /** True if `addresses` contains all evaluated addresses. */
  readonly anyAddress: boolean;
  /**
   * The address that represents all other addresses. Default: 192.0.2.1. An empty string if there are no other
   * addresses.
   */
  readonly otherAddress?: string;
  /** Uids of the devices. */
  readonly devices: readonly string[];
  /** Description of the devices: "14 devices tagged prod". */
  readonly where: string;
}

/** Returns the devices of both policies. If both policies contain a device, returns the entry of the second policy. */
export const everyDevice = (before: NamespacePolicy, after: NamespacePolicy) =>
  [...new Map([...before.devices, ...after.devices].map((device) => [device.uid, device])).values()].sort(
    byDevice,
  );

/**
 * Returns the access that a change gives, removes or alters. Logins and subjects with the same change share one line.
 * If the access mode changes, a line about an SSH key contains both the public key and its principal. Lines about lost
 * access come first, followed by lines about altered access, and then by lines about gained access. Within each of
 * these groups, lines with more devices come first.
 * @param before access before the change
 * @param after access after the change, with the same evaluated login names, addresses and uids as `before`
 */
export const accessLines = (before: Access, after: Access): ReviewedAccess[] =>
  linesOf(accessChanges(before, after), before, after);

/** Returns lines about some of the changes between two policies, in the form of {@link accessLines}. */
export function linesOf(changes: Iterable<AccessChange>, before: Access, after: Access): ReviewedAccess[] {
  const byLogin = new Map<string, AccessChange & { logins: string[] }>();
  const [mode, newMode] = [before.decider.mode, after.decider.mode];
  for (const change of changes) {
    const ids = subjectsOf(change).map(({ id }) => id);
    const id = JSON.stringify({ ...change, subject: ids, previous: undefined, login: "" });
    const same = byLogin.get(id);
    if (same) same.logins.push(change.login);
    else byLogin.set(id, { ...change, logins: [change.login] });
  }
  const groups = new DeviceGroups(everyDevice(before.policy, after.policy));
  const bySubject = Map.groupBy(byLogin.values(), (same) =>
    JSON.stringify({ ...same, subject: subjectsOf(same).map(({ kind }) => kind), previous: undefined }),
  );
  const lines = [...bySubject.values()].flatMap((same): ReviewedAccess[] => {
    const [first] = same;
    if (!first) return [];
    const { change, logins, addresses, devices } = first;
    const subjects = same.flatMap(subjectsOf);
    const keys = subjects.flatMap(({ id, name, kind }) =>
      kind === "key" ? [{ fingerprint: id, name }] : [],
    );
    const principals = subjects.filter(isPrincipalFacts);
    const identity = principals.length > 0 && { principals, before: first.before, after: first.after };
    const anyLogin = logins.length === after.evaluated.logins.length;
    const anyAddress = addresses.length === after.evaluated.addresses.length;
    const where = groups.of(devices);
    const { otherAddress } = after.evaluated;
    const other = otherAddress !== undefined && { otherAddress };
    const ends = { until: first.until ?? null, untilBefore: first.untilBefore ?? null };
    const about = { change, keys, ...identity, ...(newMode !== mode && { newMode }), ...ends };
    return [{ ...about, logins, anyLogin, addresses, anyAddress, ...other, devices, where }];
  });
  return lines.sort(
    (left, right) =>
      ORDER.indexOf(left.change) - ORDER.indexOf(right.change) ||
      right.devices.length - left.devices.length ||
      byText(firstName(left), firstName(right)),
  );
}

/** Returns the subject of a change, and also the previous subject if it is a different one. */
const subjectsOf = ({ subject, previous }: AccessChange): SubjectFacts[] =>
  [subject, previous].flatMap((one) => (one ? [subjectFacts(one)] : []));

const ORDER: readonly ReviewedAccess["change"][] = ["lost", "altered", "gained"];

const firstName = ({ keys, principals = [] }: ReviewedAccess): string =>
  [...keys, ...principals][0]?.name ?? "";

const isPrincipalFacts = (facts: SubjectFacts): facts is ReviewedPrincipal => facts.kind !== "key";

/** Returns true if a line gives access or prolongs it. */
export const isGain = ({ change, until, untilBefore }: ReviewedAccess): boolean =>
  change === "gained" || (change === "altered" && isLaterEnd(untilBefore ?? undefined, until ?? undefined));

/**
 * Returns the names of the subjects. If the access mode changes, also includes the principal of each key: `ana (now
 * user ana@example.com)`.
 */
function subjectTexts({ keys, principals = [], newMode }: ReviewedAccess, style: Style): string[] {
  if (keys.length === 0) return principals.map(({ name }) => style.name(name));
  const when = newMode === "identity" ? "now" : "before:";
  return keys.map(({ name }, index) => {
    const principal = principals[index];
    const other = principal ? ` (${when} ${principal.kind} ${style.name(principal.name)})` : "";
    return `${style.name(name)}${other}`;
  });
}

/** Returns a sentence about an access change: `key laptop-alice gains login root on 14 devices tagged prod`. */
export function accessSentence(line: ReviewedAccess, style: Style): string {
  const { change, keys, principals = [], before = "allow", after = "allow" } = line;
  const subjects = subjectTexts(line, style);
  const many = subjects.length > 1;
  const kind = keys.length > 0 ? "key" : principals[0]?.kind;
  const who = `${many ? `${subjects.length} ${kind}s` : kind} ${listedTexts(subjects)}`;
  const reach = reachPhrase(line, style);
  switch (change) {
    case "gained":
      return `${who} ${many ? "gain" : "gains"} ${reach}${startPhrase(line)}${endPhrase(line)}${CONDITIONS[after]}`;
    case "lost":
      return `${who} ${many ? "lose" : "loses"} ${reach}${CONDITIONS[before]}`;
    case "altered": {
      const ends = line.until === line.untilBefore ? undefined : changedEnd(line);
      if (ends && before === after) return `${who}: ${reach}${startPhrase(line)} ${ends}`;
      const need = `${who} ${many ? "need" : "needs"} ${NEEDED[after]} for ${reach}`;
      return `${need} (before: ${NEEDED[before]})${ends ? `, ${ends}` : ""}`;
    }
  }
}

/**
 * Returns the start time of access that starts after the change: ` starting 2026-12-01 18:00 UTC`. Returns an empty
 * string if the access starts with the change.
 */
const startPhrase = ({ starts }: Pick<ReviewedAccess, "starts">): string =>
  starts === undefined ? "" : ` starting ${instantText(starts)}`;

/**
 * Returns the expiry time of access after a change: ` until 2026-12-01 18:00 UTC`. Returns an empty string if the
 * access does not expire.
 */
const endPhrase = ({ until }: Pick<ReviewedAccess, "until">): string =>
  until === null ? "" : ` ${untilText(until)}`;

/** The condition of a login, as the object of a sentence. */
const NEEDED: Readonly<Record<Outcome, string>> = {
  allow: "no confirmation",
  reauthentication: "a re-authentication",
  approval: "the approval of an SSH key",
  unknown: "an SSH key",
  deny: "another access policy",
};

/** Describes the logins, addresses and devices of an access change: `login root on 14 devices tagged prod`. */
function reachPhrase(
  line: Pick<ReviewedAccess, "anyLogin" | "logins" | "anyAddress" | "addresses" | "otherAddress" | "where">,
  style: Style,
): string {
  const logins = line.anyLogin
    ? "every login"
    : `${line.logins.length > 1 ? "logins" : "login"} ${withOthers(line.logins, ANY_LOGIN, OTHER_LOGINS, style)}`;
  const from = line.anyAddress
    ? ""
    : ` from ${withOthers(line.addresses, otherAddressOf(line), OTHER_ADDRESSES, style)}`;
  return `${logins}${from} on ${style.text(line.where)}`;
}

/**
 * Returns sentences about the access that each key gains and loses, by the fingerprint of the key. The sentences omit
 * the key, which is their subject.
 */
export function sentencesByKey(access: readonly ReviewedAccess[]): ReadonlyMap<string, string[]> {
  const sentences = new Map<string, string[]>();
  for (const line of access) {
    const verb = line.change === "lost" ? "no longer gives" : "gives";
    const sentence = `${verb} ${reachPhrase(line, PLAIN)}${startPhrase(line)}${endPhrase(line)}`;
    for (const { fingerprint } of line.keys)
      sentences.set(fingerprint, [...(sentences.get(fingerprint) ?? []), sentence]);
  }
  return sentences;
}

const SENTENCES_MAX = 3;

/** Returns the first sentences about an object, and the number of the remaining sentences. */
export function firstSentences(sentences: readonly string[]): string[] {
  const more = sentences.length - SENTENCES_MAX;
  return more > 0 ? [...sentences.slice(0, SENTENCES_MAX), `and ${more} more`] : [...sentences];
}
