import { type Step, typeName } from "../../engine/index.ts";
import { printable } from "../words/words.ts";
import { type NamespaceReview, objections, type Review } from "./review.ts";
import {
  accessSentence,
  domainSentence,
  memberSentence,
  restSentence,
  revisionsSentence,
} from "./sentences.ts";

/** Longest comment that code hosts take, in characters: GitHub's 65,536 is the smallest of the usual ones. */
export const COMMENT_MAX = 65_000;

/** A list that stands open up to here is folded when it is longer. */
const OPEN = 20;

interface Section {
  readonly title: string;
  /** Markdown of each item, without its bullet. */
  readonly items: readonly string[];
}

/**
 * The review as a comment on a change. It begins with a marker that is the same for every review of the stack, by
 * which a later one finds and replaces it.
 * @param max longest text, in characters; lists are cut to it, and say how much is missing
 */
export function reviewMarkdown(
  review: Review,
  options: { readonly allowLockout: boolean; readonly max?: number },
): string {
  const { max = COMMENT_MAX, allowLockout } = options;
  const reasons = objections(review, { allowLockout });
  const head = [
    reviewMarker(review),
    `## Access review of ${code(`${review.project}/${review.stack}`)}`,
    "",
    ...(review.revisions ? [revisionsSentence(review.revisions, STYLE), ""] : []),
    reasons.length === 0
      ? "Nothing stands against this change."
      : "**This change should not be made as it is:**",
    ...shortened(reasons),
  ].join("\n");
  const sections = [
    ...review.namespaces.flatMap((namespace) =>
      sectionsOf(namespace, review.namespaces.length > 1 ? ` in ${code(namespace.name)}` : ""),
    ),
    { title: changesTitle(review), items: review.changes.map(changeItem) },
    { title: "Not known", items: review.unknown.map(plain) },
  ].filter(({ items }) => items.length > 0);
  const foot = review.namespaces.map((namespace) => `\n_${domainSentence(namespace, STYLE)}_`).join("\n");
  return `${head}\n${fitted(sections, max - head.length - foot.length - 2)}${foot}\n`;
}

/** Reasons that the head of the comment names, and how much of each. */
const [REASONS, REASON_LENGTH] = [20, 300];

function shortened(reasons: readonly string[]): string[] {
  const more = reasons.length - REASONS;
  const shown = reasons.slice(0, REASONS).map((reason) => {
    const cut = reason.length > REASON_LENGTH ? `${reason.slice(0, REASON_LENGTH).toWellFormed()}…` : reason;
    return `- ${plain(cut)}`;
  });
  return more > 0 ? [...shown, `- … and ${more} more, in the JSON report`] : shown;
}

/** The first line of every comment about a stack. */
export const reviewMarker = ({ project, stack }: Pick<Review, "project" | "stack">): string =>
  `<!-- gatehouse review ${`${project}/${stack}`.replaceAll(/[^\w./-]/g, "_").replaceAll("--", "__")} -->`;

function sectionsOf(namespace: NamespaceReview, where: string): Section[] {
  const { access, members, tests, lint, coverage, unknown } = namespace;
  const sign = { gained: "**+**", lost: "**−**" };
  const newFindings = lint.filter(({ isNew }) => isNew);
  return [
    {
      title: `Who can reach what${where}`,
      items: [
        ...access.map((line) => `${sign[line.change]} ${accessSentence(line, STYLE)}`),
        restSentence(access),
      ],
    },
    { title: `Members${where}`, items: members.map((change) => memberSentence(change, STYLE)) },
    {
      title: `Policy tests${where}: ${tests.filter(({ ok }) => ok).length} of ${tests.length} pass`,
      items: tests.map((test) => `${test.ok ? "pass" : "**FAIL**"}: ${plain(test.name)}${failuresOf(test)}`),
    },
    {
      title: `Findings that this change brings${where}`,
      items: newFindings.map(({ severity, message }) => `${severity}: ${plain(message)}`),
    },
    {
      title: `Older findings${where}`,
      items: lint
        .filter(({ isNew }) => !isNew)
        .map(({ severity, message }) => `${severity}: ${plain(message)}`),
    },
    {
      title: `Not in this program${where}: ${coverage.managed} of ${coverage.total} objects are (${coverage.percent} %)`,
      items: coverage.unmanaged.map(({ kind, name }) => `${kind} ${code(name)}`),
    },
    { title: `Not known${where}`, items: unknown.map(plain) },
  ];
}

function failuresOf({ failures, file, line }: NamespaceReview["tests"][number]): string {
  if (failures.length === 0) return "";
  const texts = failures.map(({ message }) => plain(message)).join("; ");
  return ` (${code(`${file}:${line}`)}): ${texts}`;
}

const changesTitle = ({ summary }: Review): string => {
  const { create, update, replace, delete: gone } = summary;
  return `Resources: ${create} to create, ${update} to update, ${replace} to replace, ${gone} to delete`;
};

function changeItem({ op, type, name, fields }: Step): string {
  const changed = op === "update" || op === "replace" ? fields.map(({ path }) => code(path)) : [];
  return `${op} ${typeName(type)} ${code(name)}${changed.length > 0 ? `: ${changed.join(", ")}` : ""}`;
}

/** The sections, each as long as leaves room for the titles of those after it. */
function fitted(sections: readonly Section[], room: number): string {
  const least = sections.map((section) => sectionText(section, 0).length + 1);
  let left = room - least.reduce((sum, length) => sum + length, 0);
  return sections
    .map((section, index) => {
      const text = sectionText(section, left + (least[index] ?? 0) - 1);
      left -= text.length + 1 - (least[index] ?? 0);
      return text;
    })
    .join("\n");
}

function sectionText({ title, items }: Section, room: number): string {
  const folded = items.length > OPEN;
  const begin = folded ? `\n<details><summary>${title}</summary>\n\n` : `\n### ${title}\n\n`;
  const end = folded ? "\n\n</details>" : "";
  const missing = (count: number) => `- … and ${count} more, in the JSON and HTML reports`;
  let left = room - begin.length - end.length - missing(items.length).length;
  const lines: string[] = [];
  for (const item of items) {
    const line = `- ${item}`;
    if (line.length + 1 > left) break;
    lines.push(line);
    left -= line.length + 1;
  }
  if (lines.length < items.length) lines.push(missing(items.length - lines.length));
  return `${begin}${lines.join("\n")}${end}`;
}

/** Text that stays text: names come from whoever may name a device, and must neither format nor link nor notify. */
function plain(text: string): string {
  return printable(text).replaceAll(/[\\`*_{}[\]()<>#+!|~@&]/g, (char) => `&#${char.charCodeAt(0)};`);
}

/** A name as code, whatever backticks it holds. */
export function code(text: string): string {
  const line = printable(text);
  const longest = Math.max(0, ...[...line.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  const pad = line === "" || line.startsWith("`") || line.endsWith("`") ? " " : "";
  return `${fence}${pad}${line}${pad}${fence}`;
}

const STYLE = { name: code, text: plain };
