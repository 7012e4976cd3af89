import {
  type Access,
  type AccessKey,
  type AccessMode,
  type AccessPolicy,
  type AccessRule,
  type AccessSubject,
  accessModeOf,
  areLoginsOf,
  type DeviceFilter,
  type Finding,
  isPrincipal,
  isSubject,
  type Principal,
  type SubjectPair,
  subjectFacts,
  subjectPairs,
} from "@gatehouse-access/sdk/policy";
import { byText, counted } from "../words.ts";
import { isGain, type ReviewedAccess } from "./accessLines.ts";

// A change of the access mode replaces the objects that decide: access policies for public keys and firewall rules, or
// the reverse. The users keep their SSH keys, so the review compares the objects that apply to the same SSH key.

/** Returns true if a change switches the access mode of a namespace. */
export const changesMode = (before: Access, after: Access): boolean =>
  accessModeOf(before.policy) !== accessModeOf(after.policy);

/** An object with a device filter that decides in one of the modes. */
interface Deciding {
  readonly kind: Finding["object"]["kind"];
  readonly id: string;
  readonly filter: DeviceFilter;
  readonly isDenial: boolean;
  /** Returns true if the object applies to a subject. */
  readonly applies: (subject: AccessSubject) => boolean;
}

/** Returns the objects that give or deny access. Omits firewall rules that allow, since they only limit other rules. */
function decidingObjects({ policy, keys, rules }: Access): Deciding[] {
  if (policy.identity) {
    return policy.identity.policies.map((one) => ({
      kind: "accessPolicy",
      id: one.id,
      filter: one.filter,
      isDenial: one.action === "deny",
      applies: (subject) => isPrincipal(subject) && isSubject(one, subject),
    }));
  }
  return [
    ...keys.map((key): Deciding => {
      const { fingerprint, filter } = key;
      const applies = (subject: AccessSubject) => subjectFacts(subject).id === fingerprint;
      return { kind: "key", id: fingerprint, filter, isDenial: false, applies };
    }),
    ...rules
      .filter(({ action }) => action === "deny")
      .map(({ id, filter }): Deciding => ({ kind: "rule", id, filter, isDenial: true, applies: () => true })),
  ];
}

/** Returns a text that two filters share if they select the same devices in the same way. */
function filterKey({ hostname, tags = [] }: DeviceFilter): string {
  if (hostname) return `hostname ${hostname}`;
  return tags.length > 0 ? `tags ${JSON.stringify([...new Set(tags)].sort())}` : "hostname .*";
}

/**
 * Returns the findings after a change of the access mode that the base already has about the filter of another object,
 * because the change copies this filter. A filter of an object that gives access counts as copied only if, for each SSH
 * key to which the object applies:
 * - an object that gave access to the same SSH key had the same filter and the same finding, and
 * - the SSH key gains no access.
 *
 * So a pattern that gave access to one key does not hide the same pattern for another key.
 * @param lines the access changes
 */
export function copiedFindings(
  [before, findingsBefore]: readonly [Access, readonly Finding[]],
  [after, findingsAfter]: readonly [Access, readonly Finding[]],
  lines: readonly ReviewedAccess[],
): ReadonlySet<Finding> {
  if (!changesMode(before, after)) return new Set();
  const idOf = ({ kind, id }: Finding["object"]) => JSON.stringify([kind, id]);
  const textOf = ({ rule, severity, field }: Finding) => JSON.stringify([rule, severity, field]);
  const known = Map.groupBy(findingsBefore, ({ object }) => idOf(object));
  const old = decidingObjects(before).map((object) => ({
    ...object,
    key: filterKey(object.filter),
    findings: new Set(known.get(idOf({ ...object, name: "" }))?.map(textOf)),
  }));
  const now = new Map(decidingObjects(after).map((object) => [idOf({ ...object, name: "" }), object]));
  const pairs = subjectPairs(before.policy, after.policy, after.time);
  const gaining = new Set(
    lines
      .filter(isGain)
      .flatMap(({ keys, principals = [] }) => [
        ...keys.map(({ fingerprint }) => fingerprint),
        ...principals.map(({ id }) => id),
      ]),
  );
  const isCopied = (finding: Finding): boolean => {
    const object = now.get(idOf(finding.object));
    if (!object || finding.field === undefined) return false;
    const same = old.filter(
      ({ isDenial, key, findings }) =>
        isDenial === object.isDenial && key === filterKey(object.filter) && findings.has(textOf(finding)),
    );
    if (object.isDenial || same.length === 0) return same.length > 0;
    const affected = pairs.filter(({ is }) => is && object.applies(is));
    const keeps = ({ was, is }: SubjectPair) =>
      was !== undefined &&
      same.some(({ applies }) => applies(was)) &&
      [was, is].every((subject) => !subject || !gaining.has(subjectFacts(subject).id));
    return affected.length > 0 && affected.every(keeps);
  };
  return new Set(findingsAfter.filter(isCopied));
}

/** The effect of a change to a mode on logins that are not evaluated. */
const OTHER_LOGINS: Readonly<Record<AccessMode, string>> = {
  identity:
    "the access mode changes from legacy to identity: logins with the password of a device account end, and users can approve new SSH keys in the browser",
  legacy:
    "the access mode changes from identity to legacy: logins with the password of a device account become possible",
};

const UNDISTINGUISHED =
  "but no evaluated login, address or device distinguishes them; add logins and addresses with --login and --from";

/**
 * Reports the effects of a change of the access mode that the access changes do not contain: logins without an SSH key,
 * and SSH keys whose access does not change for any evaluated login name, address or device, although the logins or
 * devices of the access policies differ from those of the public key.
 * @param lines the access changes
 */
export function limitationsOfModeChange(
  before: Access,
  after: Access,
  lines: readonly Pick<ReviewedAccess, "keys">[],
): string[] {
  const changed = new Set(lines.flatMap(({ keys }) => keys.map(({ fingerprint }) => fingerprint)));
  const policies = (after.policy.identity ?? before.policy.identity)?.policies ?? [];
  const newMode = accessModeOf(after.policy);
  const toIdentity = newMode === "identity";
  const ofKeys = subjectPairs(before.policy, after.policy, after.time).flatMap(({ was, is }) => {
    const [key, principal] = toIdentity ? [was, is] : [is, was];
    if (!key || isPrincipal(key) || !principal || !isPrincipal(principal)) return [];
    return changed.has(key.fingerprint) ? [] : differenceOf(key, principal, policies, toIdentity);
  });
  return [OTHER_LOGINS[newMode], ...ofKeys.sort(byText)];
}

function differenceOf(
  key: AccessKey,
  principal: Principal,
  policies: readonly AccessPolicy[],
  toIdentity: boolean,
): string[] {
  const allowing = policies.filter((policy) => policy.action === "allow" && isSubject(policy, principal));
  const isDifferent = ({ filter, logins }: AccessPolicy) =>
    filterKey(filter) !== filterKey(key.filter) || !areLoginsOf(logins, key.username);
  if (!allowing.some(isDifferent)) return [];
  const ofKey = `username ${JSON.stringify(key.username)} and filter ${filterText(key.filter)}`;
  const ofPolicies = allowing
    .map(({ name, filter, logins }) => {
      return `logins ${JSON.stringify(logins)} and filter ${filterText(filter)} (access policy ${name})`;
    })
    .join(", ");
  const [from, to] = toIdentity ? [ofKey, ofPolicies] : [ofPolicies, ofKey];
  return [`key ${key.name}: ${from} become ${to}, ${UNDISTINGUISHED}`];
}

const filterText = ({ hostname, tags = [] }: DeviceFilter): string =>
  JSON.stringify(hostname ? { hostname } : tags.length > 0 ? { tags: [...new Set(tags)].sort() } : {});

/**
 * Reports changed patterns of keys and rules that do not change any evaluated access. Without this report, such a
 * change would seem to have no effect for any login name, address or device.
 * @param changes the access changes
 */
export function undistinguished(
  before: Access,
  after: Access,
  changes: readonly Pick<ReviewedAccess, "keys">[],
): string[] {
  if (changesMode(before, after)) return limitationsOfModeChange(before, after, changes);
  if (after.policy.identity) {
    const oldPolicies = new Map(before.policy.identity?.policies.map((policy) => [policy.id, policy]));
    return after.policy.identity.policies.flatMap((policy) => {
      const title = `access policy ${policy.name}`;
      const old = oldPolicies.get(policy.id);
      // Access changes show only whether a login needs a re-authentication, not how long the last one counts.
      const [was, is] = [reauthText(old ?? policy), reauthText(policy)];
      return [
        ...(changes.length > 0 ? [] : differences(title, old, policy)),
        ...(was === is ? [] : [`${title}: re-authentication ${is} (before: ${was})`]),
      ];
    });
  }
  const seen = new Set(changes.flatMap(({ keys }) => keys.map(({ fingerprint }) => fingerprint)));
  const oldKeys = new Map(before.policy.keys.map((key) => [key.fingerprint, key]));
  const keys = after.policy.keys
    .filter(({ fingerprint }) => !seen.has(fingerprint))
    .flatMap((key) => differences(`key ${key.name}`, oldKeys.get(key.fingerprint), key));
  // An access change cannot be assigned to a single rule. If access changes, the lines about these changes already show
  // the effect of changed rules, so only changed keys are reported here.
  if (changes.length > 0) return keys;
  const oldRules = new Map(before.policy.rules.map((rule) => [rule.id, rule]));
  const rules = after.policy.rules.flatMap((rule) =>
    differences(`rule ${rule.id}`, oldRules.get(rule.id), rule),
  );
  return [...keys, ...rules];
}

function reauthText({ action, requireReauth, reauthPeriod }: AccessPolicy): string {
  if (action === "deny" || !requireReauth) return "not needed";
  return reauthPeriod === null ? "needed at every login" : `counts for ${counted(reauthPeriod, "second")}`;
}

type Patterned = Pick<AccessRule, "filter"> & Partial<Pick<AccessRule, "username" | "sourceIp">>;

function differences(title: string, old: Patterned | undefined, now: Patterned): string[] {
  const before: Readonly<Record<string, string>> = patternsOf(old ?? now);
  return Object.entries(patternsOf(now))
    .filter(([field, pattern]) => before[field] !== pattern)
    .map(
      ([field, pattern]) =>
        `${title}: ${field} changes from ${JSON.stringify(before[field])} to ${JSON.stringify(pattern)}, but no ` +
        "evaluated login, address or device distinguishes these patterns; add logins and addresses with --login and --from",
    );
}

const patternsOf = ({ username = "", sourceIp = "", filter: { hostname = "" } }: Patterned) => ({
  username,
  sourceIp,
  hostname,
});
