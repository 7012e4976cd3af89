import { printable } from "../words/words.ts";
import { type NamespaceReview, objections, type Review } from "./review.ts";
import {
  accessSentence,
  domainSentence,
  memberSentence,
  restSentence,
  revisionsSentence,
} from "./sentences.ts";

/** How a terminal shows things; picocolors has these, with and without colours. */
export interface Paint {
  readonly bold: (text: string) => string;
  readonly dim: (text: string) => string;
  readonly green: (text: string) => string;
  readonly red: (text: string) => string;
  readonly yellow: (text: string) => string;
}

const same = (text: string): string => text;

/** Lines of a list that a terminal shows. */
const SHOWN = 50;

/** The review for a terminal. */
export function reviewText(c: Paint, review: Review, options: { readonly allowLockout: boolean }): string {
  const reasons = objections(review, options);
  return [
    ...(review.revisions ? [revisionsSentence(review.revisions, { name: c.bold, text: same })] : []),
    ...review.namespaces.flatMap((namespace) => namespaceLines(c, namespace)),
    ...list(c, "Not known", review.unknown),
    "",
    ...(reasons.length === 0
      ? [c.green("Nothing stands against this change.")]
      : [
          c.red("This change should not be made as it is:"),
          ...reasons.map((reason) => `  ${printable(reason)}`),
        ]),
  ].join("\n");
}

function namespaceLines(c: Paint, namespace: NamespaceReview): string[] {
  const { name, access, members, lint, coverage, tests, unknown } = namespace;
  const style = { name: c.bold, text: same };
  const sentences = access.map((line) => {
    const text = accessSentence(line, style);
    return line.change === "gained" ? c.green(`+ ${text}`) : c.red(`- ${text}`);
  });
  const failed = tests.filter(({ ok }) => !ok);
  const counted = `${tests.length - failed.length} of ${tests.length} pass`;
  return [
    ...list(c, `Who can reach what in ${name}`, [...sentences, restSentence(access)]),
    ...list(
      c,
      "Members",
      members.map((change) => memberSentence(change, style)),
    ),
    ...list(c, `Policy tests: ${counted}`, failed.flatMap(failureLines.bind(undefined, c))),
    ...list(
      c,
      "Findings that this change brings",
      lint.filter(({ isNew }) => isNew).map(({ severity, message }) => printable(`${severity}: ${message}`)),
    ),
    ...list(
      c,
      `Not in this program (${coverage.managed} of ${coverage.total} objects are, ${coverage.percent} %)`,
      coverage.unmanaged.map(({ kind, name }) => printable(`${kind} ${name}`)),
    ),
    ...list(c, `Not known about ${name}`, unknown.map(printable)),
    c.dim(domainSentence(namespace, { name: same, text: same })),
  ];
}

const failureLines = (c: Paint, test: NamespaceReview["tests"][number]): string[] => [
  c.red(printable(`FAIL ${test.name} (${test.file}:${test.line})`)),
  ...test.failures.map(({ message }) => `  ${printable(message)}`),
];

function list(c: Paint, title: string, lines: readonly string[]): string[] {
  if (lines.length === 0) return [];
  const more = lines.length - SHOWN;
  const shown = lines.slice(0, SHOWN).map((line) => `  ${line}`);
  return [c.bold(title), ...shown, ...(more > 0 ? [c.dim(`  … and ${more} more (--json has all)`)] : [])];
}
