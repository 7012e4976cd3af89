import {
  Access,
  type AccessChange,
  type AccessPolicy,
  accessChanges,
  type DomainOptions,
} from "@gatehouse-access/sdk/policy";
import { DeviceGroups } from "../access/deviceGroups.ts";
import { byDevice, domainFor, type Estate } from "../estate/namespaceState.ts";
import { byText } from "../words.ts";
import type { ReviewedAccess } from "./report/review.ts";
import { PLAIN, reachPhrase } from "./report/sections.ts";

/** Who can reach what by two policies of a namespace, in a form in which the two can be compared. */
export function accesses(
  before: AccessPolicy,
  after: AccessPolicy,
  estate: Pick<Estate, "seen">,
  options: DomainOptions = {},
): { readonly before: Access; readonly after: Access } {
  const domain = domainFor(estate, [before, after], options);
  const uids = everyDevice(before, after).map(({ uid }) => uid);
  return { before: new Access(before, domain, uids), after: new Access(after, domain, uids) };
}

/** The devices of both policies; a device that both have is as it will be. */
const everyDevice = (before: AccessPolicy, after: AccessPolicy) =>
  [...new Map([...before.devices, ...after.devices].map((device) => [device.uid, device])).values()].sort(
    byDevice,
  );

/**
 * The access that a change gives and takes, in few lines: login names and keys that gain or lose the same are in one.
 * Losses come first, since they lock out, then the lines about most devices.
 * @param before and `after` must have the same domain and list of uids
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
  const lines = new Map<string, ReviewedAccess & { keys: ReviewedAccess["keys"][number][] }>();
  for (const { change, key, logins, addresses, devices } of byLogin.values()) {
    const id = JSON.stringify([change, logins, addresses, devices]);
    const known = lines.get(id);
    const { fingerprint, name } = key;
    if (known) known.keys.push({ fingerprint, name });
    else {
      const anyAddress = addresses.length === after.domain.addresses.length;
      const anyLogin = logins.length === after.domain.logins.length;
      const keys = [{ fingerprint, name }];
      const where = groups.of(devices);
      lines.set(id, { change, keys, logins, anyLogin, addresses, anyAddress, devices, where });
    }
  }
  return [...lines.values()].sort(
    (left, right) =>
      Number(left.change === "gained") - Number(right.change === "gained") ||
      right.devices.length - left.devices.length ||
      byText(left.keys[0]?.name ?? "", right.keys[0]?.name ?? ""),
  );
}

/** By fingerprint, what each key gains and loses, as sentences that follow on its name. */
export function sentencesByKey(access: readonly ReviewedAccess[]): ReadonlyMap<string, string[]> {
  const found = new Map<string, string[]>();
  for (const line of access) {
    const sentence = `${{ gained: "gives", lost: "gives no longer" }[line.change]} ${reachPhrase(line, PLAIN)}`;
    for (const { fingerprint } of line.keys) {
      const known = found.get(fingerprint);
      if (known) known.push(sentence);
      else found.set(fingerprint, [sentence]);
    }
  }
  return found;
}

/** Most sentences about one object. */
const SENTENCES_MAX = 3;

/** The first sentences about one object, and how many more there are. */
export function firstSentences(sentences: readonly string[]): string[] {
  const more = sentences.length - SENTENCES_MAX;
  return more > 0 ? [...sentences.slice(0, SENTENCES_MAX), `and ${more} more`] : [...sentences];
}
