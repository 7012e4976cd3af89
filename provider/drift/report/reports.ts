import { type FieldChange, typeName } from "../../engine/index.ts";
import type { Format } from "../../import/model.ts";
import { expiredSentence } from "../../namespace/expired.ts";
import { accessSentence } from "../../privileges/accessLines.ts";
import { COMMENT_MAX, code, fittedSections, MARKDOWN } from "../../review/report/markdown.ts";
import { changeSections, type ReportStyle, type Section } from "../../review/report/sections.ts";
import { testPlaces } from "../../review/report/testPlaces.ts";
import { type Paint, sectionLines, terminalStyle } from "../../review/report/text.ts";
import type { TestedNamespace } from "../../review/testedNamespace.ts";
import { actorText, declarationText } from "../../service/auditTrail.ts";
import { PLAIN } from "../../style.ts";
import { counted, displayTime, printable } from "../../words.ts";
import { changedFields } from "../changedFields.ts";
import {
  type DriftedResource,
  type DriftReport,
  isDrift,
  type Known,
  openObjects,
  type ReportedObject,
  valueText,
} from "../driftReport.ts";

/** The report for a terminal. */
export function driftText(c: Paint, report: DriftReport): string {
  const lines = driftSections(report, terminalStyle(c)).flatMap((section) => sectionLines(c, section));
  const summary = summaryText(report);
  return [...lines, ...acceptanceLines(c, report), isDrift(report) ? c.red(summary) : c.green(summary)].join(
    "\n",
  );
}

/** Returns the report as a Markdown comment or issue of at most `max` characters. Shortens lists that do not fit. */
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
  const snippet = `\n<details><summary>Code to adopt the unmanaged objects</summary>\n\n${codeBlock(program, language)}\n\n</details>\n`;
  const foot = program === "" || snippet.length > max / 4 ? "" : snippet;
  return `${head}\n${fittedSections(sections, max - head.length - foot.length - 2)}\n${foot}`;
}

function testSections(tests: TestedNamespace | undefined): Section[] {
  if (!tests) return [];
  const placeOf = testPlaces(tests.tests);
  const places = [...new Set(tests.tests.map(placeOf))];
  const sections = places.map((place) => {
    const here = tests.tests.filter((test) => placeOf(test) === place);
    const passing = here.filter(({ ok }) => ok).length;
    return {
      title: `Policy tests${MARKDOWN.text(place)}: ${passing} of ${here.length} pass`,
      items: here.flatMap(MARKDOWN.test),
    };
  });
  const notEvaluated = tests.notEvaluated.map(MARKDOWN.text);
  const [sole, ...others] = sections;
  if (sole && others.length === 0) return [{ ...sole, items: [...sole.items, ...notEvaluated] }];
  return [...sections, { title: "Policy tests: not evaluated", items: notEvaluated }];
}

const SNIPPET_MAX = 60;

function acceptanceLines(c: Paint, { acceptance }: DriftReport): string[] {
  const { language, program, changes, exceptions } = acceptance;
  const snippet = program === "" ? [] : program.split("\n");
  const more = snippet.length - SNIPPET_MAX;
  const lines = [
    ...changes,
    ...snippet.slice(0, SNIPPET_MAX),
    ...(more > 0 ? [`… and ${more} more lines (--json shows all lines)`] : []),
    ...exceptions.map((line) => `access.ignore: ${line}`),
  ];
  if (lines.length === 0) return [];
  return [
    c.bold(
      language === "terraform"
        ? "To accept the drift, change the configuration. To revert the drift, apply the configuration."
        : "To accept the drift, change the program. To revert the drift, run drift --repair.",
    ),
    ...lines.map((line) => c.dim(`  ${printable(line)}`)),
  ];
}

/** Returns a Markdown code block whose fence is longer than every run of backticks in the code. */
function codeBlock(text: string, language: Format): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}

/**
 * Returns a summary of the findings: `2 changed out of band, 1 deleted out of band, 3 unmanaged; 12 resources as
 * declared.`
 */
export function summaryText(report: DriftReport): string {
  const { drifted, expiring, expired, notEvaluated, summary } = report;
  const changed = drifted.filter(({ op }) => op === "update").length;
  const deleted = drifted.length - changed;
  const open = openObjects(report).length;
  const findings = [
    ...(changed > 0 ? [`${changed} changed out of band`] : []),
    ...(deleted > 0 ? [`${deleted} deleted out of band`] : []),
    ...(open > 0 ? [`${open} unmanaged`] : []),
    ...(expiring.length > 0 ? [`${counted(expiring.length, "API key")} expired or expiring soon`] : []),
    ...(notEvaluated.length > 0 ? [`${notEvaluated.length} not evaluated`] : []),
  ];
  const ended = expired.length > 0 ? `, ${counted(expired.length, "expired object")}` : "";
  const rest = `${counted(summary.same, "resource")} as declared${ended}`;
  return findings.length === 0 ? `No drift: ${rest}.` : `${findings.join(", ")}; ${rest}.`;
}

const FIELDS_MAX = 4;

/** The report style for plain sentences. It omits policy tests and the signs that mark changes. */
export const SENTENCES: ReportStyle = { ...PLAIN, change: (_change, sentence) => sentence, test: () => [] };

/**
 * Returns a sentence for each changed, deleted or unmanaged object. The sentence contains the actor of the last change.
 */
export const changeSentences = (report: DriftReport): string[] => [
  ...report.drifted.map((resource) => driftedSentence(resource, SENTENCES)),
  ...openObjects(report).map((object) => unmanagedSentence(object, SENTENCES)),
];

function driftSections(report: DriftReport, style: ReportStyle): Section[] {
  const { drifted, unmanaged, notApplied, namespaces, expiring, expired, notEvaluated, notes } = report;
  const changed = drifted.filter(({ op }) => op === "update");
  const deleted = drifted.filter(({ op }) => op === "delete");
  const open = openObjects(report);
  const excepted = unmanaged.filter(({ exception }) => exception !== undefined);
  const isSole = namespaces.length === 1;
  return [
    {
      title: `Changed out of band: ${changed.length}`,
      items: changed.map((resource) => driftedSentence(resource, style)),
    },
    {
      title: `Deleted out of band: ${deleted.length}`,
      items: deleted.map((resource) => driftedSentence(resource, style)),
    },
    { title: `Unmanaged: ${open.length}`, items: open.map((object) => unmanagedSentence(object, style)) },
    {
      title: `Unmanaged, with an exception: ${excepted.length}`,
      items: excepted.map((object) => unmanagedSentence(object, style)),
    },
    {
      title: `API keys expired or expiring soon: ${expiring.length}`,
      items: expiring.map(({ message }) => style.text(message)),
    },
    {
      title: `Expired: ${expired.length}`,
      items: expired.map((object) => expiredSentence(object, style.name(object.name))),
    },
    { title: `Not evaluated: ${notEvaluated.length}`, items: notEvaluated.map(style.text) },
    ...namespaces.flatMap(({ name, access, ...changes }) => {
      const where = ` from drift${isSole ? "" : ` in the namespace ${style.text(name)}`}`;
      return [
        {
          title: `Access changes${where}`,
          items: (access ?? []).map((line) => style.change(line.change, accessSentence(line, style))),
        },
        ...changeSections(changes, style, where),
      ];
    }),
    {
      title: `Declared, not applied yet: ${notApplied.length}`,
      items: notApplied.map(({ op, type, name }) => `${op} ${typeName(type)} ${style.name(name)}`),
    },
    { title: "Notes", items: notes.map(style.text) },
  ];
}

/**
 * Returns a sentence about a changed or deleted object: `PublicKey contractor: username is ".*" (declared "^support$");
 * gives every login on all 25 devices; last changed by …`.
 */
export function driftedSentence(
  { op, type, name, fields, ...known }: DriftedResource,
  style: ReportStyle,
): string {
  const own = changedFields({ type, fields });
  // For resources of other packages, `changedFields` omits outputs. If only outputs changed, the sentence lists these
  // outputs.
  const changed = own.length > 0 ? own : fields;
  const shown = changed.slice(0, FIELDS_MAX);
  const more = changed.length - shown.length;
  const changes = [
    ...shown.map((field) => style.text(fieldText(field))),
    ...(more > 0 && op === "update" ? [`${more} more ${more === 1 ? "field" : "fields"}`] : []),
  ];
  const what = op === "delete" ? "no longer exists" : changes.join(", ") || "differs from its declaration";
  return [`${typeName(type)} ${style.name(name)}: ${what}`, ...knownSentences(known, style)].join("; ");
}

const fieldText = ({ path, old, new: now }: FieldChange): string =>
  `${path} is ${valueText(now)} (declared ${valueText(old)})`;

/**
 * Returns a sentence about an unmanaged object: `PublicKey backdoor (73:d4:…) is unmanaged; gives login root on all 200
 * devices; last changed by …`.
 */
export function unmanagedSentence(
  { kind, id, name, exception, declaredEarlier, ...known }: ReportedObject,
  style: ReportStyle,
): string {
  const title = id === name ? style.name(name) : `${style.name(name)} (${style.text(id)})`;
  const status = exception
    ? `excepted until ${exception.until}: ${style.text(exception.reason)}`
    : declaredEarlier
      ? "unmanaged, and was declared by this stack earlier"
      : "unmanaged";
  return [`${kind} ${title} is ${status}`, ...knownSentences(known, style)].join("; ");
}

function knownSentences({ effects, by, declaredBy, firstSeen }: Known, style: ReportStyle): string[] {
  return [
    ...effects.map(style.text),
    ...(by ? [style.text(actorText(by))] : []),
    ...(declaredBy && !by?.declaredBy ? [style.text(`last declared by ${declarationText(declaredBy)}`)] : []),
    ...(firstSeen === undefined ? [] : [`first seen ${displayTime(firstSeen)}`]),
  ];
}
