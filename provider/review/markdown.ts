import type { Step } from "../engine/index.ts";
import { type NamespaceReview, objections, type Review } from "./review.ts";
import { accessSentence, domainSentence, memberSentence, oneLine, restSentence } from "./sentences.ts";

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
    reasons.length === 0
      ? "Nothing stands against this change."
      : "**This change should not be made as it is:**",
    ...reasons.map((reason) => `- ${plain(reason)}`),
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
  const kind = type.slice(Math.max(type.lastIndexOf(":"), type.lastIndexOf("/")) + 1);
  const changed = op === "update" || op === "replace" ? fields.map(({ path }) => code(path)) : [];
  return `${op} ${kind} ${code(name)}${changed.length > 0 ? `: ${changed.join(", ")}` : ""}`;
}

/** The sections, the later ones cut first where they do not all fit. */
function fitted(sections: readonly Section[], room: number): string {
  const texts: string[] = [];
  let left = room;
  for (const section of sections) {
    const text = sectionText(section, left);
    texts.push(text);
    left -= text.length + 1;
  }
  return texts.join("\n");
}

function sectionText({ title, items }: Section, room: number): string {
  const folded = items.length > OPEN;
  const begin = folded ? `\n<details><summary>${title}</summary>\n\n` : `\n### ${title}\n\n`;
  const end = folded ? "\n\n</details>" : "";
  const lines: string[] = [];
  // Room for the line that says what is missing.
  let left = room - begin.length - end.length - 60;
  for (const item of items) {
    const line = `- ${item}`;
    if (line.length + 1 > left) break;
    lines.push(line);
    left -= line.length + 1;
  }
  const missing = items.length - lines.length;
  if (missing > 0) lines.push(`- … and ${missing} more, in the JSON and HTML reports`);
  return `${begin}${lines.join("\n")}${end}`;
}

/** Text that stays text: names come from whoever may name a device, and must neither format nor link nor notify. */
function plain(text: string): string {
  return oneLine(text).replaceAll(/[\\`*_{}[\]()<>#+!|~@&]/g, (char) => `&#${char.charCodeAt(0)};`);
}

/** A name as code, whatever backticks it holds. */
export function code(text: string): string {
  const line = oneLine(text);
  const longest = Math.max(0, ...[...line.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  const pad = line === "" || line.startsWith("`") || line.endsWith("`") ? " " : "";
  return `${fence}${pad}${line}${pad}${fence}`;
}

const STYLE = { name: code, text: plain };
