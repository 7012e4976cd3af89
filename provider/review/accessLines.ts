import {
  Access,
  type AccessChange,
  accessChanges,
  type EvaluationOptions,
  type NamespacePolicy,
} from "@gatehouse-access/sdk/policy";
import { DeviceGroups } from "../access/deviceGroups.ts";
import { byDevice, type Estate, evaluatedFor } from "../estate/namespaceState.ts";
import { byText } from "../words.ts";
import type { ReviewedAccess } from "./report/review.ts";
import { PLAIN, reachPhrase } from "./report/sections.ts";

/**
 * Evaluates two policies of a namespace for the same logins, addresses and devices, so that they are comparable. If the
 * access in the namespace is not known, keys and rules are omitted, so that the results contain no access.
 */
export function accesses(
  old: NamespacePolicy,
  now: NamespacePolicy,
  estate: Pick<Estate, "seen" | "accessUnknown">,
  options: EvaluationOptions = {},
): { readonly before: Access; readonly after: Access } {
  const deciding = (policy: NamespacePolicy): NamespacePolicy =>
    estate.accessUnknown === undefined ? policy : { ...policy, keys: [], rules: [] };
  const [before, after] = [deciding(old), deciding(now)];
  const evaluated = evaluatedFor(estate, [before, after], options);
  const uids = everyDevice(before, after).map(({ uid }) => uid);
  return { before: new Access(before, evaluated, uids), after: new Access(after, evaluated, uids) };
}

/** The devices of both policies. If both policies contain a device, the entry of the second policy is used. */
const everyDevice = (before: NamespacePolicy, after: NamespacePolicy) =>
  [...new Map([...before.devices, ...after.devices].map((device) => [device.uid, device])).values()].sort(
    byDevice,
  );

/**
 * Returns the access that a change gives and removes. Logins and keys that gain or lose the same access share one line.
 * Lines about lost access come first. Lines with more devices come before lines with fewer devices.
 * @param before access before the change
 * @param after access after the change, with the same evaluated login names, addresses and uids as `before`
 */
export function accessLines(before: Access, after: Access): ReviewedAccess[] {
  const byLogin = new Map<string, AccessChange & { logins: string[] }>();
  for (const change of accessChanges(before, after)) {
    const id = JSON.stringify([change.change, change.key.fingerprint, change.addresses, change.devices]);
    const same = byLogin.get(id);
    if (same) same.logins.push(change.login);
    else byLogin.set(id, { ...change, logins: [change.login] });
  }
  const groups = new DeviceGroups(everyDevice(before.policy, after.policy));
  const byKey = Map.groupBy(byLogin.values(), ({ change, logins, addresses, devices }) =>
    JSON.stringify([change, logins, addresses, devices]),
  );
  const lines = [...byKey.values()].flatMap((same): ReviewedAccess[] => {
    const [first] = same;
    if (!first) return [];
    const { change, logins, addresses, devices } = first;
    const keys = same.map(({ key: { fingerprint, name } }) => ({ fingerprint, name }));
    const anyLogin = logins.length === after.evaluated.logins.length;
    const anyAddress = addresses.length === after.evaluated.addresses.length;
    const where = groups.of(devices);
    return [{ change, keys, logins, anyLogin, addresses, anyAddress, devices, where }];
  });
  return lines.sort(
    (left, right) =>
      Number(left.change === "gained") - Number(right.change === "gained") ||
      right.devices.length - left.devices.length ||
      byText(left.keys[0]?.name ?? "", right.keys[0]?.name ?? ""),
  );
}

/** Returns the access that each key gains and loses, by fingerprint. Each sentence omits its subject, the key. */
export function sentencesByKey(access: readonly ReviewedAccess[]): ReadonlyMap<string, string[]> {
  const sentences = new Map<string, string[]>();
  for (const line of access) {
    const sentence = `${{ gained: "gives", lost: "no longer gives" }[line.change]} ${reachPhrase(line, PLAIN)}`;
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
