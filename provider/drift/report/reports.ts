import { COMMENT_MAX, code, fittedSections, MARKDOWN } from "../../review/report/markdown.ts";
import { type Paint, sectionLines, terminalStyle } from "../../review/report/text.ts";
import { counted } from "../../review/words/phrases.ts";
import { type DriftReport, isDrift, openObjects } from "../driftReport.ts";
import { driftSections } from "./sections.ts";

/** The report for a terminal. */
export function driftText(c: Paint, report: DriftReport): string {
  const lines = driftSections(report, terminalStyle(c)).flatMap((section) => sectionLines(c, section));
  const summary = summaryText(report);
  return [...lines, isDrift(report) ? c.red(summary) : c.green(summary)].join("\n");
}

/**
 * The report as a comment or an issue on a code host.
 * @param max longest text, in characters; lists are cut to it, and say how much is missing
 */
export function driftMarkdown(report: DriftReport, max = COMMENT_MAX): string {
  const head = `## Drift of ${code(`${report.project}/${report.stack}`)}\n\n${summaryText(report)}`;
  const sections = driftSections(report, MARKDOWN).filter(({ items }) => items.length > 0);
  return `${head}\n${fittedSections(sections, max - head.length - 2)}\n`;
}

/** `2 changed, 1 deleted, 3 in no program; 12 as declared`. */
export function summaryText(report: DriftReport): string {
  const { drifted, summary } = report;
  const changed = drifted.filter(({ op }) => op === "update").length;
  const deleted = drifted.length - changed;
  const open = openObjects(report).length;
  const found = [
    ...(changed > 0 ? [`${changed} changed by hand`] : []),
    ...(deleted > 0 ? [`${deleted} deleted by hand`] : []),
    ...(open > 0 ? [`${open} in no program`] : []),
  ];
  const rest = `${counted(summary.same, "resource")} as declared`;
  return found.length === 0 ? `No drift: ${rest}.` : `${found.join(", ")}; ${rest}.`;
}
