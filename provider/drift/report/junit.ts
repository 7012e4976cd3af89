import { typeName } from "../../engine/index.ts";
import type { TestedNamespace } from "../../review/testedNamespace.ts";
import { countedObjects, type DriftReport } from "../driftReport.ts";
import { driftedSentence, foundSentence, SENTENCES } from "./sections.ts";

/**
 * The report and the policy tests as JUnit XML, which pipelines show as test results: a failed case for each difference that
 * counts and each test that fails, and a case that passes for each kind of difference that was not found and each test
 * that passes.
 */
export function driftJunit(
  report: DriftReport,
  tests: TestedNamespace | undefined,
  allowUnseen: boolean,
): string {
  const { project, stack, drifted, expiring, unmanagedCounts, durationMs } = report;
  const unseen = allowUnseen ? [] : [...report.unseen, ...(tests?.unseen ?? [])];
  const failed = (op: DriftReport["drifted"][number]["op"]) =>
    drifted
      .filter((one) => one.op === op)
      .map((one) => ({ name: `${typeName(one.type)} ${one.name}`, text: driftedSentence(one, SENTENCES) }));
  const groups: Readonly<Record<string, readonly { readonly name: string; readonly text: string }[]>> = {
    "changed by hand": failed("update"),
    "deleted by hand": failed("delete"),
    ...(unmanagedCounts === "fail" && {
      "in no program": countedObjects(report).map((one) => ({
        name: `${one.kind} ${one.name}`,
        text: foundSentence(one, SENTENCES),
      })),
    }),
    "expired or due": expiring.map(({ name, message }) => ({ name: `ApiKey ${name}`, text: message })),
    "not looked at": unseen.map((sentence) => ({ name: sentence, text: sentence })),
  };
  const suite = `gatehouse drift ${project}/${stack}`;
  const cases = [
    ...Object.entries(groups).flatMap(([group, failures]) =>
      failures.length === 0
        ? [passedCase(suite, `nothing ${group}`)]
        : failures.map(({ name, text }) => failedCase(`${suite}: ${group}`, name, text)),
    ),
    ...(tests?.tests ?? []).map(({ name, file, ok, failures }) =>
      ok
        ? passedCase(`${suite}: policy tests`, name)
        : failedCase(
            `${suite}: policy tests`,
            name,
            `${file}: ${failures.map(({ message }) => message).join("; ")}`,
          ),
    ),
  ];
  const failures = cases.filter(({ isFailed }) => isFailed).length;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuite name="${escaped(suite)}" tests="${cases.length}" failures="${failures}" time="${durationMs / 1000}">`,
    ...cases.map(({ xml }) => xml),
    "</testsuite>",
    "",
  ].join("\n");
}

interface Case {
  readonly xml: string;
  readonly isFailed: boolean;
}

const passedCase = (group: string, name: string): Case => ({
  xml: `  <testcase classname="${escaped(group)}" name="${escaped(name)}"/>`,
  isFailed: false,
});

const failedCase = (group: string, name: string, text: string): Case => ({
  xml: `  <testcase classname="${escaped(group)}" name="${escaped(name)}"><failure message="${escaped(text)}"/></testcase>`,
  isFailed: true,
});

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&apos;",
};

/** Text that XML 1.0 can hold: without control characters, which it cannot even escape. */
const escaped = (text: string): string =>
  text
    .toWellFormed()
    .replaceAll(/[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu, "\u{fffd}")
    .replaceAll(/[&<>"']/g, (char) => ENTITIES[char] ?? char);
