import { type FieldChange, typeName } from "../../engine/index.ts";
import type { Format } from "../../import/model.ts";
import { COMMENT_MAX, code, fittedSections, MARKDOWN } from "../../review/report/markdown.ts";
import {
  accessSentence,
  memberSentence,
  PLAIN,
  type ReportStyle,
  type Section,
} from "../../review/report/sections.ts";
import { type Paint, sectionLines, terminalStyle } from "../../review/report/text.ts";
import type { TestedNamespace } from "../../review/testedNamespace.ts";
import { counted, printable } from "../../words.ts";
import { changedFields } from "../changedFields.ts";
import {
  type DriftedResource,
  type DriftReport,
  type FoundObject,
  isDrift,
  type Known,
  openObjects,
  valueText,
} from "../driftReport.ts";
import type { DeclaringResource } from "../whoChanged.ts";

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

const FIELDS_MAX = 4;

/** Sentences alone, without marks and policy tests. */
export const SENTENCES: ReportStyle = { ...PLAIN, change: (_change, sentence) => sentence, test: () => [] };

function driftSections(report: DriftReport, style: ReportStyle): Section[] {
  const { drifted, unmanaged, notApplied, namespaces, expiring, unseen, notes } = report;
  const changed = drifted.filter(({ op }) => op === "update");
  const deleted = drifted.filter(({ op }) => op === "delete");
  const open = openObjects(report);
  const excepted = unmanaged.filter(({ exception }) => exception !== undefined);
  const isSole = namespaces.length === 1;
  return [
    { title: `Changed by hand: ${changed.length}`, items: changed.map((one) => driftedSentence(one, style)) },
    { title: `Deleted by hand: ${deleted.length}`, items: deleted.map((one) => driftedSentence(one, style)) },
    { title: `In no program: ${open.length}`, items: open.map((one) => foundSentence(one, style)) },
    {
      title: `In no program, and excepted: ${excepted.length}`,
      items: excepted.map((one) => foundSentence(one, style)),
    },
    {
      title: `API keys that have expired or are due: ${expiring.length}`,
      items: expiring.map(({ message }) => style.text(message)),
    },
    { title: `Not looked at: ${unseen.length}`, items: unseen.map(style.text) },
    ...namespaces.flatMap(({ name, access, members }) => {
      const where = isSole ? "" : ` in ${style.name(name)}`;
      return [
        {
          title: `Who can reach what by this${where}`,
          items: access.map((line) => style.change(line.change, accessSentence(line, style))),
        },
        { title: `Members by this${where}`, items: members.map((change) => memberSentence(change, style)) },
      ];
    }),
    {
      title: `Declared, and not applied yet: ${notApplied.length}`,
      items: notApplied.map(({ op, type, name }) => `${op} ${typeName(type)} ${style.name(name)}`),
    },
    { title: "Notes", items: notes.map(style.text) },
  ];
}

/** `PublicKey contractor: username is ".*" (declared "^support$"); gives every login on all 25 devices; by …`. */
export function driftedSentence(
  { op, type, name, fields, ...known }: DriftedResource,
  style: ReportStyle,
): string {
  const own = changedFields({ type, fields });
  // Of other packages' resources the outputs alone may differ.
  const changed = own.length > 0 ? own : fields;
  const shown = changed.slice(0, FIELDS_MAX);
  const more = changed.length - shown.length;
  const changes = [
    ...shown.map((field) => style.text(fieldText(field))),
    ...(more > 0 && op === "update" ? [`${more} more ${more === 1 ? "field" : "fields"}`] : []),
  ];
  const what = op === "delete" ? "is gone" : changes.join(", ") || "is not as declared";
  return [`${typeName(type)} ${style.name(name)}: ${what}`, ...knownSentences(known, style)].join("; ");
}

const fieldText = ({ path, old, new: now }: FieldChange): string =>
  `${path} is ${valueText(now)} (declared ${valueText(old)})`;

/** `PublicKey backdoor (73:d4:…), in no program; gives login root on all 200 devices; by …`. */
export function foundSentence(
  { kind, id, name, exception, ...known }: FoundObject,
  style: ReportStyle,
): string {
  const who = id === name ? style.name(name) : `${style.name(name)} (${style.text(id)})`;
  const why = exception
    ? `excepted until ${exception.until}: ${style.text(exception.reason)}`
    : "in no program";
  return [`${kind} ${who}, ${why}`, ...knownSentences(known, style)].join("; ");
}

function knownSentences({ meaning, by, declaredBy, firstSeen }: Known, style: ReportStyle): string[] {
  return [
    ...meaning.map(style.text),
    ...(by ? [style.text(actorText(by))] : []),
    ...(declaredBy && !by?.declaredBy ? [style.text(`declared last by ${declarationText(declaredBy)}`)] : []),
    ...(firstSeen === undefined ? [] : [`first seen ${timeText(firstSeen)}`]),
  ];
}

function actorText({ actor, address, at, operation, declaredBy }: NonNullable<Known["by"]>): string {
  const who = {
    user: `user ${actor.name}`,
    apikey: `API key ${actor.name}`,
    device: `device ${actor.id}`,
    operator: "an operator of the service",
  }[actor.kind];
  const where = address === "" ? "" : ` from ${address}`;
  const declared = declaredBy ? `, said to be for ${declarationText(declaredBy)}` : "";
  return `last by ${who}${where}, ${timeText(at)} (${operation}${declared})`;
}

const declarationText = ({ project, stack, resource }: DeclaringResource): string =>
  `${resource} of ${project}/${stack}`;

/** `2026-11-23 07:28 UTC`. */
const timeText = (at: string): string => `${at.slice(0, 10)} ${at.slice(11, 16)} UTC`;
