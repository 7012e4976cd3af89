import { isIP } from "node:net";
import { GatehouseError } from "@gatehouse-access/sdk";
import {
  type Access,
  type AccessDevice,
  type AccessKey,
  type AccessMode,
  type AccessSubject,
  ANY_LOGIN,
  type Decider,
  deciderOf,
  type EvaluatedLogins,
  evaluateAccess,
  type Noun,
  otherAddressOf,
  type Principal,
  readAddress,
  type SshIdentity,
} from "@gatehouse-access/sdk/policy";
import type { NamespaceState } from "../namespace/namespaceState.ts";
import { evaluatedFor } from "../namespace/readNamespace.ts";
import { membersOf } from "../resources/member/index.ts";
import {
  addressWord,
  byText,
  counted,
  firstOf,
  instantText,
  listText,
  loginWord,
  OTHER_ADDRESSES,
  OTHER_LOGINS,
  printable,
  subjectText,
} from "../words.ts";
import { globFits } from "./matching.ts";
import { queryTime } from "./queryTime.ts";

/**
 * The flags of `gatehouse access`. If a flag is omitted, the command selects all devices, keys, logins or addresses.
 */
export interface AccessFlags {
  /** Names, uids or tags of devices, see `selectDevices`. */
  readonly device?: readonly string[];
  /** Fingerprints or names of keys, see `selectSubjects`. */
  readonly key?: readonly string[];
  /** E-mail addresses, names or ids of users and service accounts, see `selectSubjects`. */
  readonly user?: readonly string[];
  readonly login?: readonly string[];
  readonly from?: readonly string[];
  /** E-mail address of a user, see `selectSubjects`. */
  readonly person?: string;
  /** The time for which logins are evaluated, see `queryTime`. */
  readonly at?: string;
  readonly explain?: boolean;
}

export type AccessFormat = "text" | "json" | "csv";

/** The validated flags of `gatehouse access`. */
export interface AccessInquiry {
  readonly devices: readonly string[];
  readonly keys: readonly string[];
  readonly users: readonly string[];
  readonly logins: readonly string[];
  /** Client addresses in the form that the service uses. */
  readonly addresses: readonly string[];
  readonly person: string | undefined;
  /** The time for which logins are evaluated. Undefined for the current time. */
  readonly at: Date | undefined;
  readonly explain: boolean;
  readonly format: AccessFormat;
}

/** Error for a flag that is invalid, or that matches no device or key. */
export class AccessInquiryError extends GatehouseError {
  override readonly name = "AccessInquiryError";
  readonly flag: string;

  constructor(flag: string, detail: string, remedy?: string) {
    super({ code: "access_selector", field: [`--${flag}`], detail, remedy });
    this.flag = flag;
  }
}

/** Checks the flags of `gatehouse access`. @throws AccessInquiryError with the invalid flag */
export function accessInquiry(flags: AccessFlags, format: AccessFormat): AccessInquiry {
  const { device = [], key = [], user = [], login = [], from = [], explain = false, person } = flags;
  for (const [flag, texts] of Object.entries({ device, key, user, login, person: [person] })) {
    if (texts.includes("")) throw new AccessInquiryError(flag, "must not be empty");
  }
  if (explain && format === "csv")
    throw new AccessInquiryError("explain", "cannot be combined with --csv", "use --json");
  if (explain && login.length > 1) throw new AccessInquiryError("explain", "allows at most one --login");
  if (explain && from.length > 1) throw new AccessInquiryError("explain", "allows at most one --from");
  const addresses = [...new Set(from.map(normalAddress))];
  return {
    devices: device,
    keys: key,
    users: user,
    person,
    logins: [...new Set(login)],
    addresses,
    at: flags.at === undefined ? undefined : queryTime(flags.at, refuseTime),
    explain,
    format,
  };
}

const refuseTime = (detail: string) => new AccessInquiryError("at", detail);

/**
 * Returns an address in the form that patterns match: dotted decimals for IPv4 and IPv4-mapped IPv6, the compressed
 * form for IPv6.
 */
function normalAddress(text: string): string {
  // The library ipaddr.js also accepts `127.1` and `0x7f000001`, so `isIP` checks the string first.
  if (isIP(text) === 0 || text.includes("%")) {
    throw new AccessInquiryError(
      "from",
      `must be an IPv4 or IPv6 address, such as 198.51.100.7, not ${text}`,
    );
  }
  return readAddress(text).toString();
}

interface Selected<T> {
  readonly items: readonly T[];
  /** Notes on how ambiguous selectors were interpreted, as sentences. */
  readonly notes: readonly string[];
}

const NEAR_MAX = 3;
/** Minimum similarity of a suggested name, from 0 to 1. */
const NEAR_LEAST = 0.3;
/** Minimum length of a fingerprint prefix. */
const FINGERPRINT_MIN = 4;

/**
 * Returns the devices that match any of the selectors. If there are no selectors, returns all devices. A selector is a
 * string with the prefix `uid:`, `name:` (which allows `*` and `?`) or `tag:`. A string without a prefix matches a
 * device name or uid. If no device has this name or uid, the string matches a tag.
 * @throws AccessInquiryError with the selector that has no match, and similar names
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
      notes: [`--device ${selector} matches a tag of ${counted(tagged.length, "device")}`],
    };
  }
  const note = `--device ${selector} matches a device name. To select the tag, use tag:${selector}`;
  return { items, notes: tagged.length === 0 ? [] : [note] };
}

/**
 * Returns the subjects that match any of the selectors. If there are no selectors, returns all subjects.
 *
 * In legacy mode, `keys` selects public keys by name, by fingerprint, or by the first 4 or more characters of the
 * fingerprint. A name or fingerprint can contain the wildcards `*` and `?`. `person` selects the public keys of a
 * member.
 *
 * In identity mode, `users` selects principals by e-mail address, name or id, with the wildcards `*` and `?`. `keys`
 * selects the principal of an SSH key by the fingerprint of the key. `person` selects the member.
 * @throws AccessInquiryError with the selector that has no match, and similar names
 */
function selectSubjects(
  estate: NamespaceState,
  decider: Decider,
  inquiry: AccessInquiry,
): Selected<AccessSubject> {
  const { person } = inquiry;
  const member = person === undefined ? undefined : personOf(membersOf(estate), person).id;
  return SELECTIONS[decider.mode].select({ estate, decider, inquiry, member });
}

/** The subjects to select from. */
interface Selection<S extends AccessSubject = AccessSubject> {
  readonly estate: NamespaceState;
  readonly decider: Decider<S>;
  readonly inquiry: AccessInquiry;
  /** The id of the member whose subjects are selected. Undefined selects the subjects of all members. */
  readonly member: string | undefined;
}

const SELECTIONS: Readonly<Record<AccessMode, { select(from: Selection): Selected<AccessSubject> }>> = {
  legacy: { select: selectKeys },
  identity: { select: selectPrincipals },
};

function selectKeys({ estate, decider, inquiry, member }: Selection<AccessKey>): Selected<AccessKey> {
  const { keys: selectors, users } = inquiry;
  if (member !== undefined && !estate.facts.enforcesExpiry)
    throw new AccessInquiryError("person", NO_OWNERS, "use --key");
  if (users.length > 0) {
    const detail = `${decider.nouns.basis} authorize logins in this namespace`;
    throw new AccessInquiryError("user", detail, "use --key");
  }
  const keys = decider.subjects.filter(({ owner }) => member === undefined || owner === member);
  return select(keys, selectors, (selector) => {
    const found = foundKeys(keys, selector);
    if (found.items.length > 0) return found;
    const near = keys.flatMap(({ name, fingerprint }) => [name, fingerprint]);
    throw unknown("key", selector, counted(keys.length, "public key"), selector, near);
  });
}

function selectPrincipals({ decider, inquiry, member }: Selection<Principal>): Selected<Principal> {
  const { keys, users } = inquiry;
  const principals = decider.subjects.filter(({ id }) => member === undefined || id === member);
  const all = counted(principals.length, ...decider.nouns.subject);
  const named = select(principals, users, (selector) => {
    const items = principals.filter(({ id, name }) => id === selector || globFits(selector, name));
    if (items.length > 0) return { items, notes: [] };
    throw unknown(
      "user",
      selector,
      all,
      selector,
      principals.map(({ name }) => name),
    );
  });
  return select(named.items, keys, (selector) => {
    const items = named.items.filter((principal) => keysMatching(principal, selector).length > 0);
    if (items.length > 0) return { items, notes: [] };
    if (named.items.every((principal) => principal.keys !== undefined))
      throw unknown("key", selector, all, selector, []);
    const remedy = "use --user, or the credential of an owner or administrator";
    throw new AccessInquiryError("key", "The SSH keys of users could not be read", remedy);
  });
}

const NO_OWNERS = "The server does not store the owners of public keys";

/**
 * Returns the member with an e-mail address. @throws AccessInquiryError with the known members if no member has this
 * address
 */
function personOf(members: ReturnType<typeof membersOf>, email: string) {
  if (!members)
    throw new AccessInquiryError("person", "The members could not be read", "use --key or --user");
  const found = members.find((member) => member.email.toLowerCase() === email.toLowerCase());
  if (found) return { id: found.id || found.email };
  const known = members.map((member) => member.email).sort(byText);
  throw new AccessInquiryError(
    "person",
    `${email} is not a member`,
    `the members are ${firstOf(known, NAMED_MAX)}`,
  );
}

const NAMED_MAX = 20;

/**
 * Returns the SSH keys of a principal that a selector matches. The selector is a fingerprint, its first characters, or
 * a fingerprint with the wildcards `*` and `?`.
 */
export const keysMatching = ({ keys = [] }: Principal, selector: string): readonly SshIdentity[] =>
  keys.filter(
    ({ fingerprint }) =>
      globFits(selector, fingerprint) || (selector.length >= SHA256_MIN && fingerprint.startsWith(selector)),
  );

const SHA256_MIN = "SHA256:".length + FINGERPRINT_MIN;

function foundKeys(keys: readonly AccessKey[], selector: string): Selected<AccessKey> {
  // ssh-keygen prints MD5 fingerprints with the prefix `MD5:`.
  const print = selector.replace(/^MD5:/, "");
  const same = keys.filter(({ fingerprint }) => fingerprint === print);
  if (same.length > 0) return { items: same, notes: [] };
  const several = (items: readonly AccessKey[], what: string): Selected<AccessKey> => {
    const note = `--key ${selector} matches ${what}: ${listText(items.map(subjectText))}`;
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

function select<T extends AccessDevice | AccessSubject>(
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
  const hint = near.length === 0 ? undefined : `similar names: ${near.join(", ")}`;
  return new AccessInquiryError(
    flag,
    `The selector ${selector} matches none of the namespace's ${all}`,
    hint,
  );
}

/**
 * Returns the names that are most similar to a string. Measures the similarity by shared character pairs (Dice
 * coefficient).
 */
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
  // With spaces around it, a string of one character also has character pairs.
  const framed = ` ${text.toLowerCase()} `;
  return new Set(Array.from({ length: framed.length - 1 }, (_, index) => framed.slice(index, index + 2)));
}

function likeness(left: ReadonlySet<string>, right: ReadonlySet<string>): number {
  const shared = [...left].filter((pair) => right.has(pair)).length;
  return (2 * shared) / (left.size + right.size);
}

/** A namespace, and the devices, keys, logins and addresses that an inquiry selects. */
export interface AccessView<S extends AccessSubject = AccessSubject> {
  readonly estate: NamespaceState;
  readonly inquiry: AccessInquiry;
  /**
   * The evaluated access. Only {@link devices} are evaluated, since a decision about one device does not depend on
   * other devices.
   */
  readonly access: Access;
  /** The selected devices, sorted by name. */
  readonly devices: readonly AccessDevice[];
  /** The selected keys, users and service accounts, sorted by name. */
  readonly subjects: readonly S[];
  /**
   * The evaluated login names and addresses, sorted. If the inquiry has login names or addresses, only those are
   * evaluated.
   */
  readonly evaluated: EvaluatedLogins;
  readonly notes: readonly string[];
}

/** Selects the part of a namespace that an inquiry matches. @throws AccessInquiryError if a selector has no match */
export function accessView(estate: NamespaceState, inquiry: AccessInquiry): AccessView {
  const { policy } = estate;
  const devices = selectDevices(policy.devices, inquiry.devices);
  const subjects = selectSubjects(estate, deciderOf(policy), inquiry);
  const all = evaluatedFor(estate, [policy]);
  const evaluated = {
    ...all,
    logins: inquiry.logins.length > 0 ? inquiry.logins.toSorted(byText) : all.logins,
    addresses: inquiry.addresses.length > 0 ? inquiry.addresses.toSorted(byText) : all.addresses,
  };
  return {
    estate,
    inquiry,
    access: evaluateAccess({ ...policy, devices: devices.items }, evaluated, undefined, inquiry.at),
    devices: devices.items,
    subjects: subjects.items,
    evaluated,
    notes: [...devices.notes, ...subjects.notes],
  };
}

/**
 * Returns the evaluated address that represents all other addresses. Returns an empty string if there is no such
 * address, or if the inquiry lists the addresses.
 */
export const standInOf = ({ inquiry, evaluated }: Pick<AccessView, "inquiry" | "evaluated">): string =>
  inquiry.addresses.length > 0 ? "" : otherAddressOf(evaluated);

/**
 * Returns the report lines that list the evaluated keys, devices, logins and addresses, and the notes on ambiguous
 * selectors.
 */
export function evaluatedLines({
  access,
  estate,
  inquiry,
  devices,
  subjects,
  evaluated,
  notes,
}: AccessView): string[] {
  const { logins, addresses } = evaluated;
  const other = standInOf({ inquiry, evaluated });
  const { policy } = estate;
  const { nouns, counts, subjects: all } = access.decider;
  const sources = `from ${nouns.loginSources} and ${counted(estate.seen.sessions, "recent session")}`;
  const loginSource = inquiry.logins.length > 0 ? "as given" : sources;
  const addressSource = inquiry.addresses.length > 0 ? "as given" : sources;
  const anyAddress = addresses.includes(other)
    ? `; ${OTHER_ADDRESSES} represents all addresses that no ${nouns.objectInShort} mentions`
    : "";
  const anyLogin = logins.includes(ANY_LOGIN)
    ? `; ${OTHER_LOGINS} represents all login names that no pattern mentions`
    : "";
  return [
    `Namespace ${estate.tenant}: ${part(subjects, all, nouns.subjectInShort)}, ` +
      `${part(devices, policy.devices, ["accepted device", "accepted devices"])}, ` +
      counted(counts.policies ?? counts.rules ?? 0, ...nouns.object),
    ...(inquiry.at ? [`Access at ${instantText(inquiry.at.toISOString())}`] : []),
    `${counted(logins.length, "login name")} (${loginSource}): ${listText(logins.map(loginWord))}${anyLogin}`,
    `${addresses.length} ${addresses.length === 1 ? "address" : "addresses"} (${addressSource}): ${listText(addresses.map((address) => addressWord(address, other)))}${anyAddress}`,
    ...notes,
  ].map(printable);
}

function part(matched: readonly unknown[], all: readonly unknown[], noun: Noun): string {
  return `${matched.length === all.length ? "" : `${matched.length} of `}${counted(all.length, ...noun)}`;
}

export const unknownLines = ({
  estate,
}: {
  readonly estate: Pick<NamespaceState, "notEvaluated" | "unknown">;
}): string[] =>
  [...estate.notEvaluated, ...estate.unknown].map((sentence) => printable(`Not known: ${sentence}`));
