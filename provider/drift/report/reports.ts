import type { Format } from "../../import/model.ts";
import { COMMENT_MAX, code, fittedSections, MARKDOWN } from "../../review/report/markdown.ts";
import type { Section } from "../../review/report/sections.ts";
import { type Paint, sectionLines, terminalStyle } from "../../review/report/text.ts";
import type { TestedNamespace } from "../../review/testedNamespace.ts";
import { counted, printable } from "../../words.ts";
import { type DriftReport, isDrift, openObjects } from "../driftReport.ts";
import { driftSections } from "./sections.ts";

export function driftText(c: Paint, report: DriftReport): string {
  const lines = driftSections(report, terminalStyle(c)).flatMap((section) => sectionLines(c, section));
  const summary = summaryText(report);
  return [...lines, ...acceptanceLines(c, report), isDrift(report) ? c.red(summary) : c.green(summary)].join(
    "\n",
  );
}

/** The report as a comment or an issue on a code host, of at most `max` characters: lists are cut to that. */
export function driftMarkdown(
  report: DriftReport,
  tests: TestedNamespace | undefined,
  max = COMMENT_MAX,
): string {
  const head = `## Drift of ${code(`${report.project}/${report.stack}`)}\n\n${summaryText(report)}`;
  const sections = [...testSections(tests), ...driftSections(report, MARKDOWN)].filter(
    ({ items }) => items.length > 0,
  );
  const { language, program } = report.acceptance;
  const snippet = `\n<details><summary>To accept what is in no program</summary>\n\n${codeBlock(program, language)}\n\n</details>\n`;
  const foot = program === "" || snippet.length > max / 4 ? "" : snippet;
  return `${head}\n${fittedSections(sections, max - head.length - foot.length - 2)}\n${foot}`;
}

function testSections(tests: TestedNamespace | undefined): Section[] {
  if (!tests) return [];
  const passing = tests.tests.filter(({ ok }) => ok).length;
  return [
    {
      title: `Policy tests: ${passing} of ${tests.tests.length} pass`,
      items: [...tests.tests.flatMap(MARKDOWN.test), ...tests.unseen.map(MARKDOWN.text)],
    },
  ];
}

const SNIPPET_MAX = 60;

function acceptanceLines(c: Paint, { acceptance }: DriftReport): string[] {
  const { language, program, changes, exceptions } = acceptance;
  const snippet = program === "" ? [] : program.split("\n");
  const more = snippet.length - SNIPPET_MAX;
  const lines = [
    ...changes,
    ...snippet.slice(0, SNIPPET_MAX),
    ...(more > 0 ? [`… and ${more} more lines (--json has all)`] : []),
    ...exceptions.map((line) => `access.ignore: ${line}`),
  ];
  if (lines.length === 0) return [];
  return [
    c.bold(
      language === "terraform"
        ? "To accept it, change the configuration (to undo it: apply the configuration)"
        : "To accept it, change the program (to undo it: drift --repair)",
    ),
    ...lines.map((line) => c.dim(`  ${printable(line)}`)),
  ];
}

/** Lines of a program, behind a fence that none of them can close. */
function codeBlock(text: string, language: Format): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}

/** `2 changed, 1 deleted, 3 in no program; 12 as declared`. */
export function summaryText(report: DriftReport): string {
  const { drifted, expiring, unseen, summary } = report;
  const changed = drifted.filter(({ op }) => op === "update").length;
  const deleted = drifted.length - changed;
  const open = openObjects(report).length;
  const found = [
    ...(changed > 0 ? [`${changed} changed by hand`] : []),
    ...(deleted > 0 ? [`${deleted} deleted by hand`] : []),
    ...(open > 0 ? [`${open} in no program`] : []),
    ...(expiring.length > 0 ? [`${counted(expiring.length, "API key")} expired or due`] : []),
    ...(unseen.length > 0 ? [`${unseen.length} not looked at`] : []),
  ];
  const rest = `${counted(summary.same, "resource")} as declared`;
  return found.length === 0 ? `No drift: ${rest}.` : `${found.join(", ")}; ${rest}.`;
}
