import {
  type Access,
  type AccessKey,
  type AccessMode,
  type AccessPolicy,
  areLoginsOf,
  type DecidingObject,
  type DeviceFilter,
  type Finding,
  isPrincipal,
  isSubject,
  type Principal,
  type SubjectPair,
  subjectFacts,
  subjectPairs,
} from "@gatehouse-access/sdk/policy";
import { byText } from "../words.ts";
import { isGain, type ReviewedAccess } from "./accessLines.ts";

// A change to the access mode replaces the objects that authorize logins: public keys and firewall rules in legacy
// mode, access policies in identity mode. The users keep their SSH keys, so the review compares the objects that apply
// to the same SSH key.

/** Returns true if a change switches the access mode of a namespace. */
export const changesMode = (before: Access, after: Access): boolean =>
  before.decider.mode !== after.decider.mode;

/**
 * Returns the objects that give or deny access. Omits allow rules of the firewall, since they only limit other rules.
 */
const decidingObjects = ({ objects }: Access) =>
  objects.filter(({ givesAccess, effect }) => givesAccess || effect === "deny");

/** Returns a string that is equal for two filters if they select the same devices in the same way. */
function filterKey({ hostname, tags = [] }: DeviceFilter): string {
  if (hostname) return `hostname ${hostname}`;
  return tags.length > 0 ? `tags ${JSON.stringify([...new Set(tags)].sort())}` : "hostname .*";
}

/**
 * Returns the copied findings of a change to the access mode. A finding is copied if it is about a filter for which an
 * object of the base already had the same finding. The filter of an object that gives access is treated as copied only
 * if both conditions are true for each SSH key to which the object applies:
 * - an object that gave access to the same SSH key had the same filter and the same finding, and
 * - the SSH key gains no access.
 *
 * Therefore, a pattern that gave access to one key does not hide the same pattern for a different key.
 * @param lines the access changes
 */
export function copiedFindings(
  [before, findingsBefore]: readonly [Access, readonly Finding[]],
  [after, findingsAfter]: readonly [Access, readonly Finding[]],
  lines: readonly ReviewedAccess[],
): ReadonlySet<Finding> {
  if (!changesMode(before, after)) return new Set();
  const idOf = ({ kind, id }: Finding["object"]) => JSON.stringify([kind, id]);
  const findingKey = ({ rule, severity, field }: Finding) => JSON.stringify([rule, severity, field]);
  const known = Map.groupBy(findingsBefore, ({ object }) => idOf(object));
  const old = decidingObjects(before).map((object) => ({
    ...object,
    key: filterKey(object.filter),
    findings: new Set(known.get(idOf({ ...object, name: "" }))?.map(findingKey)),
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
    const isDenial = object.effect === "deny";
    const same = old.filter(
      ({ effect, key, findings }) =>
        (effect === "deny") === isDenial &&
        key === filterKey(object.filter) &&
        findings.has(findingKey(finding)),
    );
    if (isDenial || same.length === 0) return same.length > 0;
    const affected = pairs.filter(({ is }) => is && object.appliesTo(is));
    const keeps = ({ was, is }: SubjectPair) =>
      was !== undefined &&
      same.some(({ appliesTo }) => appliesTo(was)) &&
      [was, is].every((subject) => !subject || !gaining.has(subjectFacts(subject).id));
    return affected.length > 0 && affected.every(keeps);
  };
  return new Set(findingsAfter.filter(isCopied));
}

/** The effect of an access mode change on logins that are not evaluated, by the new access mode. */
const OTHER_LOGINS: Readonly<Record<AccessMode, string>> = {
  identity:
    "the access mode changes from legacy to identity: logins with the password of a device account end, and users can approve new SSH keys in the browser",
  legacy:
    "the access mode changes from identity to legacy: logins with the password of a device account become possible",
};

const UNDISTINGUISHED =
  "but no evaluated login, address or device distinguishes them; add logins and addresses with --login and --from";

/**
 * Reports the effects of an access mode change that the access changes do not contain. The first effect is on logins
 * without an SSH key. The other effects are on SSH keys for which the access policies and the public key differ in
 * logins or devices, although no evaluated login name, address or device shows the difference.
 * @param lines the access changes
 */
export function limitationsOfModeChange(
  before: Access,
  after: Access,
  lines: readonly Pick<ReviewedAccess, "keys">[],
): string[] {
  const changed = new Set(lines.flatMap(({ keys }) => keys.map(({ fingerprint }) => fingerprint)));
  const { mode: newMode } = after.decider;
  const toIdentity = newMode === "identity";
  const { policies } = (toIdentity ? after : before).decider;
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
 * Reports changed patterns that do not change any evaluated access. Otherwise, a reader could conclude that these
 * changes have no effect for any login name, address or device.
 * @param changes the access changes
 */
export function undistinguished(
  before: Access,
  after: Access,
  changes: readonly Pick<ReviewedAccess, "keys">[],
): string[] {
  if (changesMode(before, after)) return limitationsOfModeChange(before, after, changes);
  const changed = new Set(changes.flatMap(({ keys }) => keys.map(({ fingerprint }) => fingerprint)));
  const idOf = ({ kind, id }: DecidingObject) => JSON.stringify([kind, id]);
  const old = new Map(before.decider.objects.map((object) => [idOf(object), object]));
  return after.decider.objects.flatMap((object) => {
    const was = old.get(idOf(object)) ?? object;
    // An access change cannot be assigned to a single rule or policy. If there are access changes, their lines already
    // show the effect of rules and policies, so only changed keys are reported here.
    const isShown = object.kind === "key" ? changed.has(object.id) : changes.length > 0;
    // Access changes show whether a login needs a re-authentication, but not how long a re-authentication is valid.
    const [earlier, reauthentication] = [was.reauthentication, object.reauthentication];
    return [
      ...(isShown ? [] : differences(was, object)),
      ...(earlier === reauthentication
        ? []
        : [`${titleOf(object)}: re-authentication ${reauthentication} (before: ${earlier})`]),
    ];
  });
}

const titleOf = ({ noun, name }: DecidingObject): string => `${noun} ${name}`;

function differences(old: DecidingObject, now: DecidingObject): string[] {
  const before = new Map(old.patterns.map(({ field, pattern }) => [field, pattern]));
  return now.patterns.flatMap(({ field, pattern }) => {
    const was = before.get(field) ?? "";
    if (was === pattern) return [];
    const name = field.replace("filter.", "");
    return [
      `${titleOf(now)}: ${name} changes from ${JSON.stringify(was)} to ${JSON.stringify(pattern)}, but no evaluated login, address or device distinguishes these patterns; add logins and addresses with --login and --from`,
    ];
  });
}
