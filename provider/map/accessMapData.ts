import type { Access, AccessKey } from "@gatehouse-access/sdk/policy";
import { AccessComparison } from "./accessComparison.ts";
import type { AccessMapData, MapDevice, MapKey, MapSubtitle } from "./data.ts";
import { EdgeList } from "./edgeList.ts";
import { groupDevices, groupKeys } from "./grouping.ts";
import { addressInWords, domainInWords, loginInWords } from "./inWords.ts";

/** What a map says beside who can reach what. */
export interface AccessMapMeta extends Omit<MapSubtitle, "domain"> {
  readonly title: string;
  /** Who holds a key, by its fingerprint. */
  readonly owners?: ReadonlyMap<string, string>;
  readonly notes?: readonly string[];
}

/**
 * The data of a map of who can reach what, before and after a change.
 * @param before and `after` must have the same domain and list of uids; one access for both makes a map without a change
 * @throws RangeError where they have not
 */
export function accessMapData(before: Access, after: Access, meta: AccessMapMeta): AccessMapData {
  checkComparable(before, after);
  const { title, owners = new Map<string, string>(), notes = [], ...subtitle } = meta;
  const keys = groupKeys(both(before.policy.keys, after.policy.keys, "fingerprint").map(mapKey(owners)));
  const devices = groupDevices(both(before.policy.devices, after.policy.devices, "uid").map(mapDevice));
  const { deviceSets, texts, edges } = edgesOf(before, after, keys.items, devices.items);
  return {
    title,
    subtitle: { ...subtitle, domain: domainInWords(after.domain) },
    keys: keys.items,
    devices: devices.items,
    people: keys.groups,
    groups: devices.groups,
    deviceSets,
    texts,
    logins: after.domain.logins.map(loginInWords),
    addresses: after.domain.addresses.map(addressInWords),
    edges,
    notes,
  };
}

function checkComparable(before: Access, after: Access): void {
  if (JSON.stringify(before.uids) !== JSON.stringify(after.uids))
    throw new RangeError("before and after must have the same list of uids");
  if (JSON.stringify(before.domain) !== JSON.stringify(after.domain))
    throw new RangeError("before and after must have the same domain");
}

function edgesOf(
  before: Access,
  after: Access,
  keys: readonly MapKey[],
  devices: readonly MapDevice[],
): EdgeList {
  const indexOf = new Map(devices.map(({ uid }, index) => [uid, index]));
  const list = new EdgeList(after.uids.map((uid) => indexOf.get(uid) ?? -1));
  const comparison = new AccessComparison(before, after);
  const byFingerprint = (all: readonly AccessKey[]) => new Map(all.map((key) => [key.fingerprint, key]));
  const [old, now] = [byFingerprint(before.policy.keys), byFingerprint(after.policy.keys)];
  const { logins, addresses } = after.domain;
  for (const [index, { fingerprint }] of keys.entries()) {
    const pair = { was: old.get(fingerprint), is: now.get(fingerprint) };
    for (const login of logins) {
      for (const address of addresses) {
        for (const compared of comparison.of(pair, login, address))
          list.add(compared, loginInWords(login), addressInWords(address));
      }
    }
    list.endKey(index);
  }
  return list;
}

/** The keys or devices of both sides, those that both have as they are after the change. */
function both<T, Id extends keyof T>(before: readonly T[], after: readonly T[], id: Id) {
  const old = new Set(before.map((one) => one[id]));
  const now = new Set(after.map((one) => one[id]));
  return [
    ...after.map((one) => ({ one, state: old.has(one[id]) ? undefined : ("new" as const) })),
    ...before.filter((one) => !now.has(one[id])).map((one) => ({ one, state: "removed" as const })),
  ];
}

interface Marked<T> {
  readonly one: T;
  readonly state: "new" | "removed" | undefined;
}

const mapKey =
  (owners: ReadonlyMap<string, string>) =>
  ({ one: { fingerprint, name }, state }: Marked<{ fingerprint: string; name: string }>): MapKey => {
    const owner = owners.get(fingerprint);
    return { fingerprint, name, ...(owner === undefined ? {} : { owner }), ...(state && { state }) };
  };

const mapDevice = ({ one: { uid, name, tags }, state }: Marked<MapDevice>): MapDevice => ({
  uid,
  name,
  tags,
  ...(state && { state }),
});
