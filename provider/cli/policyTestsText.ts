import type {
  LookedAt,
  PolicyCounterexample,
  PolicyFailure,
  PolicyTestReport,
  PolicyTestResult,
} from "../policyTests/results.ts";
import { counted, firstOf, printable, printableLines, ruleText } from "../words.ts";
import type { Colours } from "./render.ts";

/** Most login names and addresses that are listed. */
const LISTED_MAX = 8;

/**
 * What came of policy tests, as a test runner shows it.
 * @param folder the program's, relative to the reader's
 */
export function policyTestsText(c: Colours, { tests }: PolicyTestReport, folder: string): string {
  const failed = tests.filter(({ ok }) => !ok).length;
  const passed = tests.length - failed;
  const warnings = tests.reduce((sum, test) => sum + test.warnings.length, 0);
  const counts = [
    ...(failed > 0 ? [c.red(`${failed} failed`)] : []),
    ...(passed > 0 ? [c.green(`${passed} passed`)] : []),
    ...(warnings > 0 ? [c.yellow(counted(warnings, "warning"))] : []),
  ];
  const prefix = folder === "" ? "" : `${folder}/`;
  return [...tests.flatMap((test) => testLines(c, test, prefix)), counts.join(", ")].join("\n");
}

function testLines(c: Colours, test: PolicyTestResult, prefix: string): string[] {
  const { name, file, ok, failures, warnings, durationMs } = test;
  const at = (line: number | undefined) =>
    c.dim(printable(`${prefix}${file}${line === undefined ? "" : `:${line}`}`));
  const head = ok
    ? `${c.green("  ok ")} ${printable(name)} ${c.dim(`(${durationMs} ms)`)}`
    : `${c.red("FAIL ")} ${printable(name)}`;
  return [
    `${head}  ${at(test.line)}`,
    ...failures.flatMap((failure) => [
      ...(failure.assertion === undefined ? [] : [`       ${printable(failure.assertion)}`]),
      `       ${c.red(printableLines(failure.message))}${exampleNote(failure)}  ${at(failure.line)}`,
      ...failure.counterexamples.map((example) => `         ${printable(exampleText(example))}`),
      ...(failure.lookedAt ? [`       ${c.dim(printable(lookedAtText(failure.lookedAt)))}`] : []),
    ]),
    ...warnings.flatMap(({ assertion, message, line }) => [
      `       ${c.yellow(`warning: ${assertion === undefined ? "" : `${printable(assertion)} `}${printableLines(message)}`)}  ${at(line)}`,
    ]),
  ];
}

function exampleNote({ cases, counterexamples }: PolicyFailure): string {
  if (counterexamples.length === 0) return "";
  return cases > counterexamples.length ? `, ${counterexamples.length} of them:` : ":";
}

function exampleText({ login, address, device, key, rule, refusedBy }: PolicyCounterexample): string {
  const who = `${login} on ${device.name} from ${address} with the key ${JSON.stringify(key.name)} (${key.fingerprint})`;
  if (refusedBy === "login") return `${who}: refused, the key is for other login names`;
  if (refusedBy === "device") return `${who}: refused, the key is for other devices`;
  const decides = rule ? `rule ${ruleText(rule)}` : "no rule";
  return refusedBy === "rule" ? `${who}: refused by ${decides}` : `${who}, by ${decides}`;
}

function lookedAtText({ keys, devices, logins, addresses }: LookedAt): string {
  return (
    `looked at ${counted(keys, "key")} and ${counted(devices, "device")}, ` +
    `as ${listed(logins)}, from ${listed(addresses)}`
  );
}

const listed = (texts: readonly string[]): string =>
  texts.length === 0 ? "nothing" : firstOf(texts, LISTED_MAX);
