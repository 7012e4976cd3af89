import { typeName } from "../../engine/index.ts";
import { testPlaces } from "../../review/report/testPlaces.ts";
import type { TestedNamespace } from "../../review/testedNamespace.ts";
import { countedObjects, type DriftReport } from "../driftReport.ts";
import { driftedSentence, SENTENCES, unmanagedSentence } from "./reports.ts";

interface Case {
  readonly group: string;
  readonly name: string;
  /** Reason for the failure; omitted if the case passes. */
  readonly failure?: string;
}

/**
 * Returns the report and the policy tests as JUnit XML, for pipelines that display test results. Each finding and each
 * failing test is a failed case. Each passing test, and each kind of finding that has no findings, is a passing case.
 */
export function driftJunit(
  report: DriftReport,
  tests: TestedNamespace | undefined,
  allowIncomplete: boolean,
): string {
  const { project, stack, drifted, expiring, unmanagedMode, durationMs } = report;
  const notEvaluated = allowIncomplete ? [] : [...report.notEvaluated, ...(tests?.notEvaluated ?? [])];
  const driftedBy = (op: DriftReport["drifted"][number]["op"]) =>
    drifted
      .filter((one) => one.op === op)
      .map((one) => ({
        name: `${typeName(one.type)} ${one.name}`,
        failure: driftedSentence(one, SENTENCES),
      }));
  const groups: Readonly<Record<string, readonly Omit<Case, "group">[]>> = {
    "changed out of band": driftedBy("update"),
    "deleted out of band": driftedBy("delete"),
    ...(unmanagedMode === "fail" && {
      unmanaged: countedObjects(report).map((object) => ({
        name: `${object.kind} ${object.name}`,
        failure: unmanagedSentence(object, SENTENCES),
      })),
    }),
    "expired or expiring soon": expiring.map(({ name, message }) => ({
      name: `ApiKey ${name}`,
      failure: message,
    })),
    "not evaluated": notEvaluated.map((sentence) => ({ name: sentence, failure: sentence })),
  };
  const placeOf = testPlaces(tests?.tests ?? []);
  const suite = `gatehouse drift ${project}/${stack}`;
  const cases = [
    ...Object.entries(groups).flatMap(([group, items]): Case[] =>
      items.length === 0
        ? [{ group: suite, name: `no findings: ${group}` }]
        : items.map((item) => ({ ...item, group: `${suite}: ${group}` })),
    ),
    ...(tests?.tests ?? []).map(({ name, file, ok, failures, ...test }): Case => {
      const failure = `${file}: ${failures.map(({ message }) => message).join("; ")}`;
      return { group: `${suite}: policy tests${placeOf(test)}`, name, ...(!ok && { failure }) };
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

/** Escapes a string for XML 1.0. Control characters are replaced, since XML cannot escape them. */
const escaped = (text: string): string =>
  text
    .toWellFormed()
    .replaceAll(/[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu, "\u{fffd}")
    .replaceAll(/[&<>"']/g, (char) => ENTITIES[char] ?? char);
