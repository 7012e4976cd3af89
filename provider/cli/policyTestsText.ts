import type {
  LookedAt,
  PolicyCounterexample,
  PolicyFailure,
  PolicyTestReport,
  PolicyTestResult,
} from "../review/policyTests.ts";
import type { Colours } from "./render.ts";

/** Most login names and addresses that are listed. */
const LISTED_MAX = 8;

/**
 * What came of policy tests, as a test runner shows it.
 * @param folder the program's, as the reader calls it
 */
export function policyTestsText(c: Colours, { tests }: PolicyTestReport, folder: string): string {
  const failed = tests.filter(({ ok }) => !ok).length;
  const passed = tests.length - failed;
  const warnings = tests.reduce((sum, test) => sum + test.warnings.length, 0);
  const counts = [
    ...(failed > 0 ? [c.red(`${failed} failed`)] : []),
    ...(passed > 0 ? [c.green(`${passed} passed`)] : []),
    ...(warnings > 0 ? [c.yellow(`${warnings} ${warnings === 1 ? "warning" : "warnings"}`)] : []),
  ];
  const prefix = folder === "" ? "" : `${folder}/`;
  return [...tests.flatMap((test) => testLines(c, test, prefix)), counts.join(", ")].join("\n");
}

function testLines(c: Colours, test: PolicyTestResult, prefix: string): string[] {
  const { name, file, ok, failures, warnings, durationMs } = test;
  const at = (line: number | undefined) => c.dim(`${prefix}${file}${line === undefined ? "" : `:${line}`}`);
  const head = ok
    ? `${c.green("  ok ")} ${name} ${c.dim(`(${durationMs} ms)`)}`
    : `${c.red("FAIL ")} ${name}`;
  return [
    `${head}  ${at(test.line)}`,
    ...failures.flatMap((failure) => [
      ...(failure.assertion === undefined ? [] : [`       ${plain(failure.assertion)}`]),
      `       ${c.red(plain(failure.message))}${exampleNote(failure)}  ${at(failure.line)}`,
      ...failure.counterexamples.map((example) => `         ${exampleText(example)}`),
      ...(failure.lookedAt ? [`       ${c.dim(lookedAtText(failure.lookedAt))}`] : []),
    ]),
    ...warnings.flatMap(({ assertion, message, line }) => [
      `       ${c.yellow(`warning: ${assertion === undefined ? "" : `${plain(assertion)} `}${plain(message)}`)}  ${at(line)}`,
    ]),
  ];
}

function exampleNote({ cases, counterexamples }: PolicyFailure): string {
  if (counterexamples.length === 0) return "";
  return cases > counterexamples.length ? `, ${counterexamples.length} of them:` : ":";
}

function exampleText({ login, address, device, key, rule, refusedBy }: PolicyCounterexample): string {
  const who = `${plain(login)} on ${plain(device.name)} from ${plain(address)} with the key ${plain(JSON.stringify(key.name))} (${key.fingerprint})`;
  if (refusedBy === "login") return `${who}: refused, the key is for other login names`;
  if (refusedBy === "device") return `${who}: refused, the key is for other devices`;
  const decides = rule ? `rule ${rule.id} (${rule.action}, priority ${rule.priority})` : "no rule";
  return refusedBy === "rule" ? `${who}: refused by ${decides}` : `${who}, by ${decides}`;
}

function lookedAtText({ keys, devices, logins, addresses }: LookedAt): string {
  return (
    `looked at ${keys} ${keys === 1 ? "key" : "keys"} and ${devices} ${devices === 1 ? "device" : "devices"}, ` +
    `as ${listed(logins)}, from ${listed(addresses)}`
  );
}

function listed(texts: readonly string[]): string {
  const more = texts.length - LISTED_MAX;
  const shown = texts.slice(0, LISTED_MAX).map(plain);
  return texts.length === 0 ? "nothing" : `${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** Names come from whoever tried to log in, and may hold what a terminal obeys. */
const plain = (text: string) =>
  text.replaceAll(
    /[^\P{Cc}\n]/gu,
    (character) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`,
  );
