import {
  type AccessDevice,
  type AccessKey,
  type AccessRule,
  type AccessSubject,
  ANY_ADDRESS,
  type ConsideredRule,
  DEFAULT_LOGIN,
  type DeviceFilter,
  type Explanation,
  explain,
  keyAdmits,
  type Mismatch,
  otherAddressOf,
  patternOf,
} from "@gatehouse-access/sdk/policy";
import { addressWord, instantText, listText, printable, ruleText, subjectText, untilText } from "../words.ts";
import { AccessInquiryError, type AccessView, standInOf, unknownLines } from "./inquiry.ts";

/** A rule, and its effect on one login. */
export interface ExplainedRule extends ConsideredRule {
  /**
   * True if exactly one condition of the rule does not match, and the rule would allow or deny the login if that
   * condition matched.
   */
  readonly onlyMismatch: boolean;
}

/** The login that an explanation is about. */
export interface ExplainedLogin {
  readonly login: string;
  readonly address: string;
  /**
   * The login parameters that the inquiry omits: `login`, `address` or both. The explanation uses default values for
   * them.
   */
  readonly assumed: readonly ("login" | "address")[];
}

/** The reasons why one login is allowed or refused. */
export interface AccessExplanation extends Omit<Explanation, "key" | "considered">, ExplainedLogin {
  readonly key: AccessKey;
  /** True if the key's pattern matches the login name. */
  readonly keyAdmitsLogin: boolean;
  /** True if the key's filter matches the device. */
  readonly keyAdmitsDevice: boolean;
  /** All rules of the namespace, strongest first. */
  readonly considered: readonly ExplainedRule[];
}

/**
 * Explains the decision about one login.
 * @throws AccessInquiryError unless the inquiry matches exactly one key and one device
 */
export function accessExplanation(view: AccessView<AccessKey>): AccessExplanation {
  const { subject: key, device, ...explained } = explainedLogin(view);
  const { login, address } = explained;
  const question = { fingerprint: key.fingerprint, login, address, uid: device.uid, at: view.access.time };
  const explanation = explain(view.estate.policy, question);
  const decisive = explanation.considered.findIndex(({ role }) => role === "decides");
  return {
    ...explanation,
    ...explained,
    key,
    keyAdmitsLogin: keyAdmits({ ...key, filter: {} }, device, login),
    keyAdmitsDevice: keyAdmits({ ...key, username: "" }, device, login),
    considered: explanation.considered.map((rule, place) => ({
      ...rule,
      // A rule that is weaker than the deciding rule would have no effect on the login even if it matched.
      onlyMismatch: rule.mismatches.length === 1 && (decisive < 0 || place < decisive),
    })),
  };
}

/**
 * Returns the login that an inquiry selects for an explanation. Parameters that the inquiry omits get default values.
 * @throws AccessInquiryError unless the inquiry matches exactly one subject and one device
 */
export function explainedLogin<S extends AccessSubject>(
  view: AccessView<S>,
): ExplainedLogin & { readonly subject: S; readonly device: AccessDevice } {
  const { inquiry, devices, evaluated } = view;
  const subject = only(view.access.decider.nouns.selector, view.subjects, subjectText);
  const device = only("device", devices, ({ name }: AccessDevice) => name);
  const [login = DEFAULT_LOGIN] = inquiry.logins;
  const [address = otherAddressOf(evaluated) || ANY_ADDRESS] = inquiry.addresses;
  const assumed: ("login" | "address")[] = inquiry.logins.length === 0 ? ["login"] : [];
  if (inquiry.addresses.length === 0) assumed.push("address");
  return { subject, device, login, address, assumed };
}

/** Returns the only item of a list. @throws AccessInquiryError if the list does not have exactly one item */
export function only<T>(flag: string, items: readonly T[], labelOf: (item: T) => string): T {
  const [item] = items;
  if (item !== undefined && items.length === 1) return item;
  const several = items.length === 0 ? "" : `: ${printable(listText(items.map(labelOf)))}`;
  throw new AccessInquiryError(
    flag,
    `--explain needs exactly one ${flag}, but ${items.length} match${several}`,
  );
}

export function explanationText(view: AccessView, explanation: AccessExplanation): string {
  const { allowed, key, login, device, considered, deniedBy } = explanation;
  const end = view.access.endOf(key);
  const hasEffect = deniedBy === undefined || deniedBy === "rule";
  return renderExplanation(view, explanation, {
    result: allowed ? "ALLOWED" : "DENIED",
    who: `key ${key.name}`,
    reason: reason(view, explanation),
    subject: [
      `Key ${key.name}, ${key.fingerprint}${end === undefined ? "" : `, ${untilText(end)}`}`,
      `  ${mark(explanation.keyAdmitsLogin)} the login name ${login}: the key allows ${loginText(key.username, "no")}`,
      `  ${mark(explanation.keyAdmitsDevice)} the device ${deviceText(device)}: the key allows ${filterText(key.filter, "no")}`,
    ],
    order: `Firewall rules, strongest first${hasEffect ? "" : " (without effect, since the key refuses the login)"}:`,
    objects: considered.map(ruleLine),
  });
}

/** The parts of an explanation's text that differ by access mode. */
interface ExplanationParts {
  readonly result: string;
  /** The subject of the login. */
  readonly who: string;
  /** The reason for the decision, as part of a sentence. */
  readonly reason: string;
  /** The lines about the subject. */
  readonly subject: readonly string[];
  /** The line above the list of the rules or policies. */
  readonly order: string;
  /** The lines about the rules or policies. */
  readonly objects: readonly string[];
}

/** Returns the text of an explanation. */
export function renderExplanation(
  view: AccessView,
  { login, address, device, assumed }: ExplainedLogin & { readonly device: AccessDevice },
  { result, who, reason, subject, order, objects }: ExplanationParts,
): string {
  const { mode, nouns } = view.access.decider;
  const from = assumed.includes("address") ? addressWord(address, standInOf(view)) : address;
  const lines = [
    `${result}: ${who} as ${login} from ${from} on ${device.name}`,
    `Because ${reason}.`,
    `Namespace ${view.estate.tenant}${mode === "legacy" ? "" : `, which decides by ${nouns.basis}`}`,
    ...(view.inquiry.at ? [`Time of the login: ${instantText(view.inquiry.at.toISOString())}`] : []),
    ...assumed.map((what) =>
      what === "login"
        ? `No --login was given: ${login} is assumed.`
        : `No --from was given: an address that no ${nouns.objectInShort} mentions is assumed.`,
    ),
    ...view.notes,
    "",
    ...subject,
    "",
    objects.length === 0 ? `The namespace has no ${nouns.object[1]}.` : order,
    ...objects,
    ...unknownLines(view),
  ];
  return `${lines.map(printable).join("\n")}\n`;
}

/** The policy that authorizes a login. */
interface OfPolicy {
  readonly estate: Pick<AccessView["estate"], "policy">;
}

/** Returns the reason for the decision about a login, as part of a sentence. */
export function reason(
  view: OfPolicy,
  {
    deniedBy,
    rule,
    key,
    device,
    login,
  }: Pick<AccessExplanation, "deniedBy" | "rule" | "key" | "device" | "login">,
): string {
  if (deniedBy === "type")
    return `the service refuses keys of the type ${key.refusedType}, such as ${key.name}`;
  if (deniedBy === "expired") return `the key ${key.name} expired at ${instantText(key.expiresAt ?? "")}`;
  if (deniedBy === "owner") return `the key ${key.name} belongs to ${ownerText(view, key)}`;
  if (deniedBy === "login") return `the key ${key.name} does not allow the login name ${login}`;
  if (deniedBy === "device") return `the key ${key.name} does not allow the device ${device.name}`;
  if (rule === null)
    return "the key admits the login, and no firewall rule matches, so the default (allow) applies";
  const verb = deniedBy === "rule" ? "denies the login" : "allows the login, and the key admits it";
  return `the firewall rule ${ruleText(rule)} ${verb}`;
}

/**
 * Describes the owner of a key that the service refuses because of its owner. The owner is not a member, or the
 * membership has no effect.
 */
function ownerText({ estate }: OfPolicy, { owner = "" }: AccessKey): string {
  const member = estate.policy.members?.find(({ id }) => id === owner);
  if (!member) return `the user ${owner}, who is not a member`;
  if (!member.isAccepted) return `${member.email}, who has not accepted the invitation`;
  return `${member.email}, whose membership ended at ${instantText(member.expiresAt ?? "")}`;
}

function ruleLine({ rule, role, mismatches, onlyMismatch }: ExplainedRule): string {
  const rest = onlyMismatch ? " (everything else matches)" : "";
  const verdict =
    role === "no match" ? `does not match: ${mismatches.map(mismatchText).join(", ")}${rest}` : role;
  const end = rule.expiresAt === undefined ? "" : `; ${untilText(rule.expiresAt)}`;
  return `  ${ruleText(rule)} ${verdict}. Conditions: ${aspects(rule)}${end}`;
}

const mismatchText = (part: Mismatch) =>
  part === "inactive" || part === "expired" ? part : `${part} differs`;

function aspects({ action, username, sourceIp, filter }: AccessRule): string {
  const broken = action === "deny" ? "every" : "no";
  return `${loginText(username, broken)}; ${addressText(sourceIp, broken)}; ${filterText(filter, broken)}`;
}

const mark = (admits: boolean) => (admits ? "admits" : "refuses");

/**
 * The word that describes the effect of an invalid pattern: the pattern matches `every` device or `no` device. Login
 * names and addresses use the same words.
 */
type Quantifier = "every" | "no";

const isForAll = (pattern: string) => pattern === "" || pattern === ".*";

const loginText = (pattern: string, broken: Quantifier) =>
  isForAll(pattern) ? "any login name" : `login names like ${patternText(pattern, `${broken} login name`)}`;

const addressText = (pattern: string, broken: Quantifier) =>
  isForAll(pattern) ? "any address" : `addresses like ${patternText(pattern, `${broken} address`)}`;

/** Describes the devices that a filter matches, as part of a sentence. */
export function filterText({ hostname, tags }: DeviceFilter, broken: Quantifier): string {
  if (hostname && !isForAll(hostname))
    return `devices named like ${patternText(hostname, `${broken} device`)}`;
  return !hostname && tags && tags.length > 0 ? `devices tagged ${tags.join(" or ")}` : "any device";
}

const deviceText = ({ name, tags }: AccessDevice) =>
  tags.length > 0 ? `${name} (tagged ${tags.join(", ")})` : `${name} (without tags)`;

/**
 * Returns a pattern in the form in which an explanation shows it.
 * @param broken what the pattern matches if it is invalid, such as `no device`
 */
const patternText = (pattern: string, broken: string): string =>
  patternOf(pattern) ? pattern : `${pattern} (invalid pattern: matches ${broken})`;
