import { typeName } from "../../engine/index.ts";
import { PLAIN } from "../../review/report/sections.ts";
import { type DriftReport, openObjects } from "../driftReport.ts";
import { driftedSentence, foundSentence } from "./sections.ts";

const STYLE = { ...PLAIN, change: (_change: string, sentence: string) => sentence, test: () => [] };

/**
 * The report as JUnit XML, which pipelines show as test results: a failed case for each difference that counts, and a
 * case that passes for each kind of difference that was not found.
 */
export function driftJunit(report: DriftReport): string {
  const { project, stack, drifted, unmanagedCounts, durationMs } = report;
  const open = unmanagedCounts === "fail" ? openObjects(report) : [];
  const failures = [
    ...drifted.map((one) => ({
      group: one.op === "update" ? "changed by hand" : "deleted by hand",
      name: `${typeName(one.type)} ${one.name}`,
      text: driftedSentence(one, STYLE),
    })),
    ...open.map((one) => ({
      group: "in no program",
      name: `${one.kind} ${one.name}`,
      text: foundSentence(one, STYLE),
    })),
  ];
  const groups = [
    "changed by hand",
    "deleted by hand",
    ...(unmanagedCounts === "fail" ? ["in no program"] : []),
  ];
  const passed = groups.filter((group) => failures.every((failure) => failure.group !== group));
  const suite = `gatehouse drift ${project}/${stack}`;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuite name="${escaped(suite)}" tests="${failures.length + passed.length}" failures="${failures.length}" time="${durationMs / 1000}">`,
    ...passed.map((group) => `  <testcase classname="${escaped(suite)}" name="nothing ${group}"/>`),
    ...failures.map(
      ({ group, name, text }) =>
        `  <testcase classname="${escaped(`${suite}: ${group}`)}" name="${escaped(name)}"><failure message="${escaped(text)}"/></testcase>`,
    ),
    "</testsuite>",
    "",
  ].join("\n");
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
