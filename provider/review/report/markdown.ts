import { DECIDER_NOUNS, type Noun } from "@gatehouse-access/sdk/policy";
import type { PolicyTestResult } from "../../policyTests/results.ts";
import { isGain, type ReviewedAccess } from "../../privileges/accessLines.ts";
import { changeLists, changesIn, gainsOf, isWithoutGain } from "../../privileges/privileges.ts";
import { counted, firstOf, printable } from "../../words.ts";
import type { NamespaceReview, Review } from "./review.ts";
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

/** Maximum length of a comment, in characters. GitHub has the lowest limit of the common code hosts: 65,536. */
export const COMMENT_MAX = 65_000;

const OPEN_MAX = 20;

/**
 * Returns the review as a Markdown comment for a pull request. A later review finds the comment by its first line and
 * replaces the comment.
 * @param options.max maximum length in characters. If a list is too long, it is cut and ends with the number of omitted
 *   items.
 */
export function reviewMarkdown(
  review: Review,
  { max = COMMENT_MAX, ...allowed }: Allowed & { readonly max?: number },
): string {
  const reasons = objections(review, allowed);
  const head = [
    reviewMarker(review),
    titleOf(review, reasons.length),
    "",
    ...(review.revisions ? [revisionsSentence(review.revisions, MARKDOWN), ""] : []),
    ...(reasons.length === 0 ? [] : ["**Blocking findings:**"]),
    ...shortened(reasons),
  ].join("\n");
  const isSole = review.namespaces.length === 1;
  const sections = [
    ...review.namespaces.flatMap((namespace) => {
      // The namespace name is plain text without backticks, because `sectionText` writes some titles as HTML, in which
      // backticks do not mark code.
      const where = isSole ? "" : ` in the namespace ${plain(namespace.name)}`;
      const sections = namespaceSections(namespace, MARKDOWN, where, where).filter(hasItems);
      return isSole || !isHarmless(namespace) ? sections : foldedNamespace(namespace.name, sections);
    }),
    ...planSections(review, MARKDOWN).filter(hasItems),
  ];
  const foot = review.namespaces
    .map((namespace) => `\n\n_${evaluatedSentence(namespace, MARKDOWN)}_`)
    .join("");
  return `${head}\n${fittedSections(sections, max - head.length - foot.length - 2)}${foot}\n`;
}

const hasItems = ({ items }: Section) => items.length > 0;

/** Returns true if the change gives no privileges, and the review evaluated all parts. */
const isHarmless = (namespace: NamespaceReview): boolean =>
  isWithoutGain(namespace) && namespace.notEvaluated.length === 0;

/**
 * Returns the title of a comment: the result, the stack, the numbers of changes, and the first gained privileges. A
 * review that could not evaluate all parts is incomplete, even if a flag allows incomplete reviews. A review is also
 * incomplete if the plan creates namespaces with resources, because these namespaces are not known for certain before
 * the apply. Such resources do not block the change.
 */
function titleOf(review: Review, blocking: number): string {
  const { namespaces, newNamespaces, project, stack } = review;
  const missing = [review, ...namespaces].flatMap(({ notEvaluated }) => notEvaluated).length;
  const changes = changeLists.flatMap(({ list, what }) => {
    const count = namespaces.reduce((sum, namespace) => sum + changesIn(namespace, list).length, 0);
    return count === 0 ? [] : [counted(count, what)];
  });
  const gained = namespaces.flatMap(gainsOf).map(plain);
  const access = (["gained", "lost", "altered"] as const).flatMap((change) =>
    SUBJECTS.flatMap(({ idsOf, noun }) => {
      const count = subjectsWith(namespaces, change, idsOf);
      if (count === 0) return [];
      const who = counted(count, ...noun);
      if (change === "altered") return [`the access of ${who} changes`];
      const verb = { gained: "gain", lost: "lose" }[change];
      return [`${who} ${verb}${count === 1 ? "s" : ""} access`];
    }),
  );
  const isIncomplete = missing > 0 || newNamespaces.resources > 0;
  const result = blocking > 0 ? "Blocked" : isIncomplete ? "Incomplete" : "OK";
  const counts = [
    ...(blocking > 0 ? [counted(blocking, "blocking finding")] : []),
    ...access,
    ...changes,
    ...(namespaces.some((namespace) => !namespace.access)
      ? ["access not known"]
      : access.length + changes.length === 0
        ? ["no access changes"]
        : []),
    ...(missing > 0 ? [`${counted(missing, "part")} not evaluated`] : []),
    ...(newNamespaces.resources > 0
      ? [`${counted(newNamespaces.resources, "resource")} in new namespaces not evaluated`]
      : []),
  ];
  const privileges = gained.length === 0 ? "" : `; gained privileges: ${firstOf(gained, TITLE_MAX)}`;
  return `## ${result}: access review of ${code(`${project}/${stack}`)} (${counts.join(", ")}${privileges})`;
}

/** The maximum number of privileges in the title. The report lists all privileges. */
const TITLE_MAX = 3;

/** The subjects of access changes: public keys in legacy mode, and users and service accounts in identity mode. */
const SUBJECTS: readonly {
  readonly noun: Noun;
  readonly idsOf: (line: ReviewedAccess) => readonly string[];
}[] = [
  { noun: DECIDER_NOUNS.legacy.subject, idsOf: ({ keys }) => keys.map(({ fingerprint }) => fingerprint) },
  {
    noun: DECIDER_NOUNS.identity.subject,
    // A line that contains both public keys and principals is counted only for its keys. Principals are users and
    // service accounts.
    idsOf: ({ keys, principals = [] }) => (keys.length > 0 ? [] : principals.map(({ id }) => id)),
  },
];

/**
 * Returns the number of subjects with a change of this kind. Prolonged access is treated as gained. A subject in two
 * namespaces is counted twice.
 */
const subjectsWith = (
  namespaces: readonly NamespaceReview[],
  change: ReviewedAccess["change"],
  idsOf: (line: ReviewedAccess) => readonly string[],
): number =>
  namespaces
    .map(({ access }) => (access ?? []).filter((line) => effectOf(line) === change).flatMap(idsOf))
    .reduce((sum, ids) => sum + new Set(ids).size, 0);

const effectOf = (line: ReviewedAccess): ReviewedAccess["change"] => (isGain(line) ? "gained" : line.change);

/** Collapses the sections of a namespace in which the change gives no privileges. */
function foldedNamespace(name: string, sections: readonly Section[]): Section[] {
  const before = `\n<details><summary>The namespace ${plain(name)}: no gained access</summary>\n`;
  return sections.map((section, index) => ({
    ...section,
    around: [index === 0 ? before : "", index === sections.length - 1 ? "\n\n</details>" : ""],
  }));
}

/**
 * The maximum number of blocking findings at the top of the comment, and the maximum length of a finding in characters.
 */
const [REASONS_MAX, REASON_MAX] = [20, 300];

function shortened(reasons: readonly string[]): string[] {
  const more = reasons.length - REASONS_MAX;
  const shown = reasons.slice(0, REASONS_MAX).map((reason) => {
    const cut = reason.length > REASON_MAX ? `${reason.slice(0, REASON_MAX).toWellFormed()}…` : reason;
    return `- ${plain(cut)}`;
  });
  return more > 0 ? [...shown, `- … and ${more} more, in the JSON report`] : shown;
}

/** Returns the first line of a comment. It is the same for all reviews of a stack. */
const reviewMarker = ({ project, stack }: Pick<Review, "project" | "stack">): string =>
  `<!-- gatehouse review ${`${project}/${stack}`.replaceAll(/[^\w./-]/g, "_").replaceAll("--", "__")} -->`;

function failuresOf({ failures, file, line }: PolicyTestResult): string {
  if (failures.length === 0) return "";
  const texts = failures.map(({ message }) => plain(message)).join("; ");
  return ` (${code(`${file}:${line}`)}): ${texts}`;
}

/**
 * Returns the sections of a comment in at most `space` characters. Each section leaves space for the titles of the
 * sections that follow.
 */
export function fittedSections(sections: readonly Section[], space: number): string {
  const least = sections.map((section) => sectionText(section, 0).length + 1);
  let left = space - least.reduce((sum, length) => sum + length, 0);
  return sections
    .map((section, index) => {
      const text = sectionText(section, left + (least[index] ?? 0) - 1);
      left -= text.length + 1 - (least[index] ?? 0);
      return text;
    })
    .join("\n");
}

function sectionText({ title, items, around: [before, after] = ["", ""] }: Section, space: number): string {
  const folded = items.length > OPEN_MAX;
  const begin = `${before}${folded ? `\n<details><summary>${title}</summary>\n\n` : `\n### ${title}\n\n`}`;
  const end = `${folded ? "\n\n</details>" : ""}${after}`;
  const missing = (count: number) => `- … and ${count} more, in the JSON and HTML reports`;
  let left = space - begin.length - end.length - missing(items.length).length;
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

/** Escapes text so that names cannot format a comment, create links, or notify users. */
function plain(text: string): string {
  return printable(text).replaceAll(/[\\`*_{}[\]()<>#+!|~@&]/g, (char) => `&#${char.charCodeAt(0)};`);
}

/** Returns a name as inline code, even if the name contains backticks. */
export function code(text: string): string {
  const line = printable(text);
  const longest = Math.max(0, ...[...line.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  const pad = line === "" || line.startsWith("`") || line.endsWith("`") ? " " : "";
  return `${fence}${pad}${line}${pad}${fence}`;
}

/** The style of Markdown comments. */
export const MARKDOWN: ReportStyle = {
  name: code,
  text: plain,
  change: (change, sentence) => `${{ gained: "**+**", lost: "**−**", altered: "**±**" }[change]} ${sentence}`,
  test: (test) => [`${test.ok ? "pass" : "**FAIL**"}: ${plain(test.name)}${failuresOf(test)}`],
};
