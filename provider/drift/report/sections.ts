import { type FieldChange, typeName } from "../../engine/index.ts";
import {
  accessSentence,
  memberSentence,
  PLAIN,
  type ReportStyle,
  type Section,
} from "../../review/report/sections.ts";
import {
  changedFields,
  type DriftedResource,
  type DriftReport,
  type FoundObject,
  type Known,
  openObjects,
} from "../driftReport.ts";
import type { DeclaringResource } from "../whoChanged.ts";

const VALUE_MAX = 60;
const FIELDS_MAX = 4;

/** Sentences alone, without marks and policy tests. */
export const SENTENCES: ReportStyle = { ...PLAIN, change: (_change, sentence) => sentence, test: () => [] };

export function driftSections(report: DriftReport, style: ReportStyle): Section[] {
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

export function valueText(value: FieldChange["old"]): string {
  if (value === undefined) return "left out";
  const text = JSON.stringify(value);
  return text.length > VALUE_MAX ? `${text.slice(0, VALUE_MAX).toWellFormed()}…` : text;
}

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
