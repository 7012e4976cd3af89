import { isIP } from "node:net";
import { GatehouseError } from "@gatehouse-access/sdk";
import {
  Access,
  type AccessDevice,
  type AccessDomain,
  type AccessKey,
  ANY_ADDRESS,
  ANY_LOGIN,
} from "@gatehouse-access/sdk/policy";
import { domainFor, type Estate, inOrder } from "../estate/namespaceState.ts";
import { byText, counted, keyText, listText, printable } from "../words.ts";
import { globFits, readAddress } from "./matching.ts";

/** The flags of `gatehouse access`. Omitted ones match everything. */
export interface AccessFlags {
  /** Names, uids or tags of devices, see `selectDevices`. */
  readonly device?: readonly string[];
  /** Fingerprints or names of keys, see `selectKeys`. */
  readonly key?: readonly string[];
  readonly login?: readonly string[];
  readonly from?: readonly string[];
  readonly explain?: boolean;
}

export type AccessFormat = "text" | "json" | "csv";

/** The checked flags of `gatehouse access`. */
export interface AccessInquiry {
  readonly devices: readonly string[];
  readonly keys: readonly string[];
  readonly logins: readonly string[];
  /** Normalized as in the service. */
  readonly addresses: readonly string[];
  readonly explain: boolean;
  readonly format: AccessFormat;
}

/** A flag is invalid, or matches no device or key. */
export class AccessInquiryError extends GatehouseError {
  override readonly name = "AccessInquiryError";
  readonly flag: string;

  constructor(flag: string, detail: string, remedy?: string) {
    super({ code: "access_inquiry", field: [`--${flag}`], detail, remedy });
    this.flag = flag;
  }
}

/** @throws AccessInquiryError naming the invalid flag */
export function accessInquiry(flags: AccessFlags, format: AccessFormat): AccessInquiry {
  const { device = [], key = [], login = [], from = [], explain = false } = flags;
  for (const [flag, texts] of Object.entries({ device, key, login })) {
    if (texts.includes("")) throw new AccessInquiryError(flag, "must not be empty");
  }
  if (explain && format === "csv")
    throw new AccessInquiryError("explain", "not with --csv", "with --json it is");
  if (explain && login.length > 1) throw new AccessInquiryError("explain", "takes one --login at most");
  if (explain && from.length > 1) throw new AccessInquiryError("explain", "takes one --from at most");
  const addresses = [...new Set(from.map(normalAddress))];
  return { devices: device, keys: key, logins: [...new Set(login)], addresses, explain, format };
}

/** The form that patterns match: IPv4 in dotted decimals, also if it is mapped into IPv6, and shortened IPv6. */
function normalAddress(text: string): string {
  // The library accepts `127.1` and `0x7f000001`.
  if (isIP(text) === 0 || text.includes("%")) {
    throw new AccessInquiryError("from", `must be an IPv4 or IPv6 address, as 198.51.100.7, not ${text}`);
  }
  return readAddress(text).toString();
}

interface Selected<T> {
  readonly items: readonly T[];
  /** How ambiguous selectors were interpreted, as sentences. */
  readonly notes: readonly string[];
}

const NEAR_MAX = 3;
/** Minimum likeness of a near name, from 0 to 1. */
const NEAR_LEAST = 0.3;
/** Minimum length of the beginning of a fingerprint. */
const FINGERPRINT_MIN = 4;

/**
 * Devices that match any of the selectors. A selector is `uid:`, `name:` (with `*` and `?`) or `tag:` and a text; or a text
 * alone, which is a name or uid if a device has it, and otherwise a tag. Without selectors: all devices.
 * @throws AccessInquiryError naming a selector without a match, with near names
 */
export function selectDevices<Device extends AccessDevice>(
  devices: readonly Device[],
  selectors: readonly string[],
): Selected<Device> {
  return select(devices, selectors, (selector) => {
    const [, kind, text = selector] = /^(uid|name|tag):(.*)$/s.exec(selector) ?? [];
    const found = foundDevices(devices, selector, kind, text);
    if (found.items.length > 0) return found;
    const names = devices.map(({ name }) => name);
    const tags = devices.flatMap((device) => device.tags);
    const near = kind === "name" ? names : kind === "tag" ? tags : [...names, ...tags];
    throw unknown("device", selector, counted(devices.length, "accepted device"), text, near);
  });
}

function foundDevices<Device extends AccessDevice>(
  devices: readonly Device[],
  selector: string,
  kind: string | undefined,
  text: string,
): Selected<Device> {
  const wanted = text.toLowerCase();
  const named = devices.filter(({ name }) => globFits(wanted, name.toLowerCase()));
  const ofUid = devices.filter(({ uid }) => uid === wanted);
  const tagged = devices.filter(({ tags }) => tags.includes(text));
  if (kind === "name") return { items: named, notes: [] };
  if (kind === "uid") return { items: ofUid, notes: [] };
  if (kind === "tag") return { items: tagged, notes: [] };
  const items = [...new Set([...ofUid, ...named])];
  if (items.length === 0) {
    return {
      items: tagged,
      notes: [`--device ${selector} is a tag, of ${counted(tagged.length, "device")}`],
    };
  }
  const note = `--device ${selector} is a name here; the tag of that name is tag:${selector}`;
  return { items, notes: tagged.length === 0 ? [] : [note] };
}

/**
 * Keys that match any of the selectors. A selector is a fingerprint, a name, the beginning of a fingerprint (4 characters
 * or more), or a name or fingerprint with `*` and `?`. Without selectors: all keys.
 * @throws AccessInquiryError naming a selector without a match, with near names
 */
function selectKeys(keys: readonly AccessKey[], selectors: readonly string[]): Selected<AccessKey> {
  return select(keys, selectors, (selector) => {
    const found = foundKeys(keys, selector);
    if (found.items.length > 0) return found;
    const near = keys.flatMap(({ name, fingerprint }) => [name, fingerprint]);
    throw unknown("key", selector, counted(keys.length, "public key"), selector, near);
  });
}

function foundKeys(keys: readonly AccessKey[], selector: string): Selected<AccessKey> {
  // ssh-keygen writes this prefix.
  const print = selector.replace(/^MD5:/, "");
  const same = keys.filter(({ fingerprint }) => fingerprint === print);
  if (same.length > 0) return { items: same, notes: [] };
  const several = (items: readonly AccessKey[], what: string): Selected<AccessKey> => {
    const note = `--key ${selector} is ${what}: ${listText(items.map(keyText))}`;
    return { items, notes: items.length === 1 ? [] : [note] };
  };
  const named = keys.filter(({ name }) => name === selector);
  const begun = print.length < FINGERPRINT_MIN ? [] : keys.filter((key) => key.fingerprint.startsWith(print));
  const either = [...new Set([...named, ...begun])];
  if (either.length > 0) return several(either, "several keys");
  const like = keys.filter(
    ({ name, fingerprint }) => globFits(selector, name) || globFits(selector, fingerprint),
  );
  return several(like, counted(like.length, "key"));
}

function select<T extends AccessDevice | AccessKey>(
  items: readonly T[],
  selectors: readonly string[],
  find: (selector: string) => Selected<T>,
): Selected<T> {
  if (selectors.length === 0) return { items, notes: [] };
  const found = selectors.map(find);
  const chosen = new Set(found.flatMap((one) => one.items));
  return {
    items: items.filter((item) => chosen.has(item)),
    notes: found.flatMap(({ notes }) => notes),
  };
}

function unknown(
  flag: string,
  selector: string,
  all: string,
  text: string,
  names: readonly string[],
): AccessInquiryError {
  const near = nearNames(text, names).sort(byText);
  const hint = near.length === 0 ? undefined : `near: ${near.join(", ")}`;
  return new AccessInquiryError(flag, `${selector} is none of the namespace's ${all}`, hint);
}

/** The names nearest to a text, by common pairs of characters (Dice's coefficient). */
function nearNames(text: string, names: Iterable<string>): string[] {
  const wanted = pairs(text);
  return [...new Set(names)]
    .map((name) => ({ name, likeness: likeness(wanted, pairs(name)) }))
    .filter(({ likeness }) => likeness >= NEAR_LEAST)
    .sort((left, right) => right.likeness - left.likeness || byText(left.name, right.name))
    .slice(0, NEAR_MAX)
    .map(({ name }) => name);
}

function pairs(text: string): ReadonlySet<string> {
  // With spaces, single characters have pairs too.
  const framed = ` ${text.toLowerCase()} `;
  return new Set(Array.from({ length: framed.length - 1 }, (_, index) => framed.slice(index, index + 2)));
}

function likeness(left: ReadonlySet<string>, right: ReadonlySet<string>): number {
  const shared = [...left].filter((pair) => right.has(pair)).length;
  return (2 * shared) / (left.size + right.size);
}

/** A namespace, and the part of it that an inquiry matches. */
export interface AccessView {
  readonly estate: Estate;
  readonly inquiry: AccessInquiry;
  /** Only of {@link devices}: a decision about one device does not depend on others. */
  readonly access: Access;
  /** By name. */
  readonly devices: readonly AccessDevice[];
  /** By name. */
  readonly keys: readonly AccessKey[];
  /** Sorted. If the inquiry has login names or addresses, it has no others. */
  readonly domain: AccessDomain;
  readonly notes: readonly string[];
}

/** @throws AccessInquiryError if a selector of the inquiry has no match */
export function accessView(estate: Estate, inquiry: AccessInquiry): AccessView {
  const { policy } = inOrder(estate);
  const devices = selectDevices(policy.devices, inquiry.devices);
  const keys = selectKeys(policy.keys, inquiry.keys);
  const all = domainFor(estate, [policy]);
  const domain = {
    logins: inquiry.logins.length > 0 ? inquiry.logins.toSorted(byText) : all.logins,
    addresses: inquiry.addresses.length > 0 ? inquiry.addresses.toSorted(byText) : all.addresses,
  };
  return {
    estate,
    inquiry,
    access: new Access({ ...policy, devices: devices.items }, domain),
    devices: devices.items,
    keys: keys.items,
    domain,
    notes: [...devices.notes, ...keys.notes],
  };
}

/** Lines that report what was evaluated, and how the inquiry was interpreted. */
export function domainLines({ estate, inquiry, devices, keys, domain, notes }: AccessView): string[] {
  const { logins, addresses } = domain;
  const sources = `by patterns, and ${counted(estate.seen.sessions, "session")} of late`;
  const loginSource = inquiry.logins.length > 0 ? "as asked" : sources;
  const addressSource = inquiry.addresses.length > 0 ? "as asked" : sources;
  const standIn = addresses.includes(ANY_ADDRESS)
    ? `; ${ANY_ADDRESS} stands for every address that no rule names`
    : "";
  const anyLogin = logins.includes(ANY_LOGIN)
    ? `; ${ANY_LOGIN} stands for every login name that no pattern names`
    : "";
  return [
    `Namespace ${estate.tenant}: ${part(keys, estate.policy.keys, "key")}, ` +
      `${part(devices, estate.policy.devices, "accepted device")}, ${counted(estate.policy.rules.length, "firewall rule")}`,
    `${counted(logins.length, "login name")} (${loginSource}): ${listText(logins)}${anyLogin}`,
    `${addresses.length} ${addresses.length === 1 ? "address" : "addresses"} (${addressSource}): ${listText(addresses)}${standIn}`,
    ...notes,
  ].map(printable);
}

function part(asked: readonly unknown[], all: readonly unknown[], what: string): string {
  return asked.length === all.length
    ? counted(all.length, what)
    : `${asked.length} of ${counted(all.length, what)}`;
}

export const unknownLines = ({ estate }: AccessView): string[] =>
  [...estate.unseen, ...estate.unknown].map((sentence) => printable(`Not known: ${sentence}`));
