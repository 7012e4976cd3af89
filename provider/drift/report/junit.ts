import { typeName } from "../../engine/index.ts";
import type { TestedNamespace } from "../../review/testedNamespace.ts";
import { countedObjects, type DriftReport } from "../driftReport.ts";
import { driftedSentence, foundSentence, SENTENCES } from "./reports.ts";

interface Case {
  readonly group: string;
  readonly name: string;
  /** Omitted if the case passes. */
  readonly failure?: string;
}

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
  const driftedBy = (op: DriftReport["drifted"][number]["op"]) =>
    drifted
      .filter((one) => one.op === op)
      .map((one) => ({
        name: `${typeName(one.type)} ${one.name}`,
        failure: driftedSentence(one, SENTENCES),
      }));
  const groups: Readonly<Record<string, readonly Omit<Case, "group">[]>> = {
    "changed by hand": driftedBy("update"),
    "deleted by hand": driftedBy("delete"),
    ...(unmanagedCounts === "fail" && {
      "in no program": countedObjects(report).map((one) => ({
        name: `${one.kind} ${one.name}`,
        failure: foundSentence(one, SENTENCES),
      })),
    }),
    "expired or due": expiring.map(({ name, message }) => ({ name: `ApiKey ${name}`, failure: message })),
    "not looked at": unseen.map((sentence) => ({ name: sentence, failure: sentence })),
  };
  const suite = `gatehouse drift ${project}/${stack}`;
  const cases = [
    ...Object.entries(groups).flatMap(([group, found]): Case[] =>
      found.length === 0
        ? [{ group: suite, name: `nothing ${group}` }]
        : found.map((one) => ({ ...one, group: `${suite}: ${group}` })),
    ),
    ...(tests?.tests ?? []).map(({ name, file, ok, failures }): Case => {
      const failure = `${file}: ${failures.map(({ message }) => message).join("; ")}`;
      return { group: `${suite}: policy tests`, name, ...(!ok && { failure }) };
    }),
  ];
  const failed = cases.filter(({ failure }) => failure !== undefined).length;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuite name="${escaped(suite)}" tests="${cases.length}" failures="${failed}" time="${durationMs / 1000}">`,
    ...cases.map(caseText),
    "</testsuite>",
    "",
  ].join("\n");
}

function caseText({ group, name, failure }: Case): string {
  const head = `  <testcase classname="${escaped(group)}" name="${escaped(name)}"`;
  return failure === undefined ? `${head}/>` : `${head}><failure message="${escaped(failure)}"/></testcase>`;
}

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
