import {
  type AccessDevice,
  type AccessKey,
  type AccessRule,
  ANY_ADDRESS,
  type ConsideredRule,
  DEFAULT_LOGIN,
  type DeviceFilter,
  type Explanation,
  explain,
  keyAdmits,
  type Mismatch,
  patternOf,
} from "@gatehouse-access/sdk/policy";
import { counted, keyText, listText, printable, ruleText } from "../words.ts";
import { AccessInquiryError, type AccessView, unknownLines } from "./inquiry.ts";

/** What a rule has to do with one login. */
export interface ExplainedRule extends ConsideredRule {
  /** True where one aspect alone keeps it from matching, and it would decide if it matched. */
  readonly nearly: boolean;
}

/** Why one login is allowed, or is not. */
export interface AccessExplanation extends Omit<Explanation, "key" | "considered"> {
  readonly key: AccessKey;
  readonly login: string;
  readonly address: string;
  /** What the inquiry left open, so that it was assumed. */
  readonly assumed: readonly ("login" | "address")[];
  /** Whether the key's pattern is found in the login name. */
  readonly keyAdmitsLogin: boolean;
  /** Whether the key's filter is for the device. */
  readonly keyAdmitsDevice: boolean;
  /** All rules of the namespace, strongest first. */
  readonly considered: readonly ExplainedRule[];
}

/** @throws AccessInquiryError unless the inquiry matches exactly one key and one device */
export function accessExplanation({ estate, inquiry, devices, keys }: AccessView): AccessExplanation {
  const key = only("key", keys, keyText);
  const device = only("device", devices, ({ name }: AccessDevice) => name);
  const [login = DEFAULT_LOGIN] = inquiry.logins;
  const [address = ANY_ADDRESS] = inquiry.addresses;
  const question = { fingerprint: key.fingerprint, login, address, uid: device.uid };
  const explanation = explain(estate.policy, question);
  const decisive = explanation.considered.findIndex(({ role }) => role === "decides");
  return {
    ...explanation,
    key,
    login,
    address,
    assumed: [
      ...(inquiry.logins.length === 0 ? (["login"] as const) : []),
      ...(inquiry.addresses.length === 0 ? (["address"] as const) : []),
    ],
    keyAdmitsLogin: keyAdmits({ ...key, filter: {} }, device, login),
    keyAdmitsDevice: keyAdmits({ ...key, username: "" }, device, login),
    considered: explanation.considered.map((rule, place) => ({
      ...rule,
      // A rule that is weaker than the decisive one would not decide, even if it matched.
      nearly: rule.misses.length === 1 && (decisive < 0 || place < decisive),
    })),
  };
}

function only<T>(flag: string, items: readonly T[], textOf: (item: T) => string): T {
  const [item] = items;
  if (item !== undefined && items.length === 1) return item;
  const several = items.length === 0 ? "" : `: ${printable(listText(items.map(textOf)))}`;
  throw new AccessInquiryError(
    flag,
    `--explain is about exactly one, and this means ${counted(items.length, flag)}${several}`,
  );
}

export function explanationText(view: AccessView, explanation: AccessExplanation): string {
  const { allowed, key, login, address, device } = explanation;
  const lines = [
    `${allowed ? "ALLOWED" : "REFUSED"}: key ${key.name} as ${login} from ${address} on ${device.name}`,
    `Because ${reason(explanation)}.`,
    `Namespace ${view.estate.tenant}`,
    ...explanation.assumed.map((what) =>
      what === "login"
        ? `No --login was given: ${login} is assumed.`
        : `No --from was given: ${address} is assumed, which stands for every address that no rule names.`,
    ),
    ...view.notes,
    "",
    `Key ${key.name}, ${key.fingerprint}`,
    `  ${mark(explanation.keyAdmitsLogin)} the login name ${login}: it is for ${loginText(key.username, "nobody")}`,
    `  ${mark(explanation.keyAdmitsDevice)} the device ${deviceText(device)}: it is for ${filterText(key.filter, "no device")}`,
    "",
    ...ruleLines(explanation),
    ...unknownLines(view),
  ];
  return `${lines.map(printable).join("\n")}\n`;
}

function reason({ refusedBy, rule, key, device, login }: AccessExplanation): string {
  if (refusedBy === "login") return `the key ${key.name} is not for the login name ${login}`;
  if (refusedBy === "device") return `the key ${key.name} is not for the device ${device.name}`;
  if (rule === null) return "the key admits it, and no firewall rule matches, which allows";
  const verb = refusedBy === "rule" ? "denies it" : "allows it, and the key admits it";
  return `the firewall rule ${ruleText(rule)} ${verb}`;
}

function ruleLines({ considered, refusedBy }: AccessExplanation): string[] {
  if (considered.length === 0) return ["The namespace has no firewall rules."];
  const without =
    refusedBy === "login" || refusedBy === "device" ? "; the key refuses it, whatever they say" : "";
  return [`Firewall rules, strongest first${without}:`, ...considered.map(ruleLine)];
}

function ruleLine({ rule, role, misses, nearly }: ExplainedRule): string {
  const alone = nearly ? " alone, so nearly decides" : "";
  const verdict = role === "misses" ? `misses by ${misses.map(missText).join(", ")}${alone}` : role;
  return `  ${ruleText(rule)} ${verdict}. It is for ${aspects(rule)}`;
}

const missText = (miss: Mismatch) => (miss === "inactive" ? "being inactive" : miss);

function aspects({ action, username, sourceIp, filter }: AccessRule): string {
  const [everybody, everything] = action === "deny" ? ["everybody", "every device"] : ["nobody", "no device"];
  return `${loginText(username, everybody)}; ${addressText(sourceIp, everybody)}; ${filterText(filter, everything)}`;
}

const mark = (admits: boolean) => (admits ? "admits" : "refuses");

const isForAll = (pattern: string) => pattern === "" || pattern === ".*";

const loginText = (pattern: string, broken: string) =>
  isForAll(pattern) ? "any login name" : `login names like ${patternText(pattern, broken)}`;

const addressText = (pattern: string, broken: string) =>
  isForAll(pattern) ? "any address" : `addresses like ${patternText(pattern, broken)}`;

function filterText({ hostname, tags }: DeviceFilter, broken: string): string {
  if (hostname && !isForAll(hostname)) return `devices named like ${patternText(hostname, broken)}`;
  return !hostname && tags && tags.length > 0 ? `devices tagged ${tags.join(" or ")}` : "any device";
}

const deviceText = ({ name, tags }: AccessDevice) =>
  tags.length > 0 ? `${name} (tagged ${tags.join(", ")})` : `${name} (without tags)`;

/** @param broken what an invalid pattern matches */
const patternText = (pattern: string, broken: string): string =>
  patternOf(pattern) ? pattern : `${pattern} (which is no pattern, and so for ${broken})`;
