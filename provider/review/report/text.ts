import { PLAIN } from "../../style.ts";
import { counted, printable } from "../../words.ts";
import type { Review } from "./review.ts";
import {
  type Allowed,
  evaluatedSentence,
  namespaceSections,
  objections,
  planSections,
  type ReportStyle,
  revisionsSentence,
  type Section,
} from "./sections.ts";

/** Terminal colors in the form that picocolors provides. */
export interface Paint {
  readonly bold: (text: string) => string;
  readonly dim: (text: string) => string;
  readonly green: (text: string) => string;
  readonly red: (text: string) => string;
  readonly yellow: (text: string) => string;
}

const SHOWN_MAX = 50;

/**
 * Returns the review as text for a terminal. Omits findings that existed before the change. Also omits the changed
 * resources, since `preview` prints them.
 */
export function reviewText(c: Paint, review: Review, options: Allowed): string {
  const reasons = objections(review, options);
  const style = terminalStyle(c);
  const isSole = review.namespaces.length === 1;
  const lines = (section: Section) => sectionLines(c, section);
  return [
    ...(review.revisions ? [revisionsSentence(review.revisions, style)] : []),
    ...review.namespaces.flatMap((namespace) => {
      const where = ` in the namespace ${printable(namespace.name)}`;
      return [
        ...namespaceSections(namespace, style, where, isSole ? "" : where).flatMap(lines),
        c.dim(evaluatedSentence(namespace, PLAIN)),
      ];
    }),
    ...planSections(review, style).flatMap(lines),
    "",
    ...(reasons.length === 0
      ? [c.green("No blocking findings.")]
      : [
          c.red(`${counted(reasons.length, "blocking finding")}:`),
          ...reasons.map((reason) => `  ${printable(reason)}`),
        ]),
  ].join("\n");
}

/** The style of reports in a terminal. */
export const terminalStyle = (c: Paint): ReportStyle => ({
  name: (name) => c.bold(printable(name)),
  text: printable,
  change(change, sentence) {
    if (change === "gained") return c.green(`+ ${sentence}`);
    return change === "lost" ? c.red(`- ${sentence}`) : c.yellow(`~ ${sentence}`);
  },
  test: ({ ok, name, file, line, failures }) =>
    ok
      ? []
      : [
          c.red(printable(`FAIL ${name} (${file}:${line})`)),
          ...failures.map(({ message }) => `  ${printable(message)}`),
        ],
});

/** Returns the lines of a section for a terminal. Returns an empty list for sections that terminal reports omit. */
export function sectionLines(c: Paint, { title, items, isDetail }: Section): string[] {
  if (items.length === 0 || isDetail) return [];
  const more = items.length - SHOWN_MAX;
  return [
    c.bold(title),
    ...items.slice(0, SHOWN_MAX).map((line) => `  ${line}`),
    ...(more > 0 ? [c.dim(`  … and ${more} more (--json lists all)`)] : []),
  ];
}
