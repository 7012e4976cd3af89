import { type AccessRule, literalsOf, patternOf, type Subject } from "@gatehouse-access/sdk/policy";
import { rangesIn } from "../import/helperCalls.ts";
import type { MapText } from "./data.ts";

const SUBJECTS = {
  login: { any: "any login", one: "login", many: "logins that" },
  address: { any: "any address", one: "address", many: "addresses that" },
  device: { any: "all devices", one: "device", many: "devices whose names" },
} as const satisfies Record<Subject, object>;

/** Describes the logins, addresses and devices that a firewall rule matches, and lists the patterns of the rule. */
export function conditionsOf({ action, username, sourceIp, filter }: AccessRule): MapText {
  const { hostname = "", tags = [] } = filter;
  const phrases = [
    phraseOf(username, "login", action),
    phraseOf(sourceIp, "address", action),
    hostname === "" && tags.length > 0
      ? { text: `devices tagged ${listed(tags)}`, patterns: [] }
      : phraseOf(hostname, "device", action),
  ];
  return {
    text: phrases.map(({ text }) => text).join("; "),
    patterns: phrases.flatMap(({ patterns }) => patterns),
  };
}

/** Describes a pattern of a rule in words. If no words describe the pattern exactly, returns the pattern itself. */
function phraseOf(pattern: string, subject: Subject, action: AccessRule["action"]): MapText {
  const { one, many } = SUBJECTS[subject];
  const isValid = patternOf(pattern) !== undefined;
  const invalid = `${action === "deny" ? "every" : "no"} ${one} (invalid pattern)`;
  const words = isValid ? patternInWords(pattern, subject) : invalid;
  if (words === undefined) return { text: `${many} match ${pattern}`, patterns: [] };
  return { text: words, patterns: pattern === "" ? [] : [`${one} ${pattern}`] };
}

/** Matches names that a description can contain without quotation marks. */
const NAME = /^[\w.:@+-]+$/;

/**
 * Returns words that describe exactly the login names, addresses or device names that a pattern matches. Assumes that
 * no name contains a line break. Returns undefined if no words describe the pattern exactly.
 */
function patternInWords(pattern: string, subject: Subject): string | undefined {
  const { any, one, many } = SUBJECTS[subject];
  const { kind, texts } = literalsOf(pattern) ?? { kind: "needs", texts: [] };
  if (kind === "needs") {
    const ranges = subject === "address" ? rangesIn(pattern)?.args : undefined;
    return ranges && `${one} in ${listed(ranges)}`;
  }
  if (kind !== "whole" && texts.includes("")) return any;
  if (!texts.every((text) => NAME.test(text))) return undefined;
  const begin = `${many} begin with`;
  const phrases = { whole: one, start: begin, line: begin, end: `${many} end with`, part: `${many} contain` };
  return `${phrases[kind]} ${listed(texts)}`;
}

/** Lists alternatives: `a`, `a or b`, `a, b or c`. */
function listed(texts: readonly string[]): string {
  const others = [...new Set(texts)];
  const last = others.pop() ?? "";
  return others.length === 0 ? last : `${others.join(", ")} or ${last}`;
}
