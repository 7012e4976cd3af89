import {
  Access,
  type AccessChange,
  accessChanges,
  accessModeOf,
  type EvaluationOptions,
  type NamespacePolicy,
  type SubjectFacts,
  subjectFacts,
} from "@gatehouse-access/sdk/policy";
import { DeviceGroups } from "../access/deviceGroups.ts";
import { byDevice, countingInvited, type Estate, evaluatedFor } from "../estate/namespaceState.ts";
import { byText } from "../words.ts";
import type { ReviewedAccess, ReviewedPrincipal } from "./report/review.ts";
import { endPhrase, PLAIN, reachPhrase, startPhrase } from "./report/sections.ts";

/**
 * Evaluates two policies of a namespace for the same logins, addresses and devices, so that they are comparable. If the
 * access in the namespace is not known, the objects that decide are omitted, so that the results contain no access.
 */
export function accesses(
  old: NamespacePolicy,
  now: NamespacePolicy,
  estate: Pick<Estate, "seen" | "accessUnknown">,
  options: EvaluationOptions = {},
): { readonly before: Access; readonly after: Access } {
  const deciding = (policy: NamespacePolicy): NamespacePolicy =>
    estate.accessUnknown === undefined
      ? countingInvited(policy)
      : { devices: policy.devices, keys: [], rules: [] };
  const [before, after] = [deciding(old), deciding(now)];
  const evaluated = evaluatedFor(estate, [before, after], options);
  const uids = everyDevice(before, after).map(({ uid }) => uid);
  const time = new Date();
  const accessBy = (policy: NamespacePolicy) => new Access(policy, evaluated, uids, time);
  return { before: accessBy(before), after: accessBy(after) };
}

/** The devices of both policies. If both policies contain a device, the entry of the second policy is used. */
const everyDevice = (before: NamespacePolicy, after: NamespacePolicy) =>
  [...new Map([...before.devices, ...after.devices].map((device) => [device.uid, device])).values()].sort(
    byDevice,
  );

/**
 * Returns the access that a change gives, removes and alters. Logins and subjects with the same change share one line.
 * If the access mode changes, a line about an SSH key contains both the public key and its principal. Lines about lost
 * access come first, then lines about altered access. Lines with more devices come before lines with fewer devices.
 * @param before access before the change
 * @param after access after the change, with the same evaluated login names, addresses and uids as `before`
 */
export const accessLines = (before: Access, after: Access): ReviewedAccess[] =>
  linesOf(accessChanges(before, after), before, after);

/** Returns the lines about some changes between two accesses, as {@link accessLines}. */
export function linesOf(changes: Iterable<AccessChange>, before: Access, after: Access): ReviewedAccess[] {
  const byLogin = new Map<string, AccessChange & { logins: string[] }>();
  const [mode, newMode] = [before, after].map(({ policy }) => accessModeOf(policy));
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

/** Returns the subject of a change, and the previous subject if it is another one. */
const subjectsOf = ({ subject, previous }: AccessChange): SubjectFacts[] =>
  [subject, previous].flatMap((one) => (one ? [subjectFacts(one)] : []));

const ORDER: readonly ReviewedAccess["change"][] = ["lost", "altered", "gained"];

const firstName = ({ keys, principals = [] }: ReviewedAccess): string =>
  [...keys, ...principals][0]?.name ?? "";

const isPrincipalFacts = (facts: SubjectFacts): facts is ReviewedPrincipal => facts.kind !== "key";

/** Returns the access that each key gains and loses, by fingerprint. Each sentence omits its subject, the key. */
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
