import {
  type AccessDevice,
  type AccessRule,
  type DeviceFilter,
  type Mismatch,
  patternOf,
} from "@gatehouse-access/sdk/policy";
import { ruleText } from "../words/phrases.ts";
import { printable } from "../words/printable.ts";
import { unknownLines } from "./domainText.ts";
import type { AccessExplanation, ExplainedRule } from "./explain.ts";
import type { AccessView } from "./view.ts";

/** A decision with its reasons, in lines for people. */
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

/** @param broken what stands for a pattern that does not compile */
const patternText = (pattern: string, broken: string): string =>
  patternOf(pattern) ? pattern : `${pattern} (which is no pattern, and so for ${broken})`;
