import { definitions } from "../resources/index.ts";
import { CONDITIONS, capitalized, instantText, printable } from "../words.ts";
import { line as csvLine } from "./answer.ts";
import { DeviceGroups } from "./deviceGroups.ts";
import type { AccessEvidence, EvidenceObject } from "./evidence.ts";

/** The formats of an evidence file, by file extension. */
export const EVIDENCE_FORMATS: Readonly<Record<string, (evidence: AccessEvidence) => string>> = {
  ".json": (evidence) => `${JSON.stringify(evidence, null, 1)}\n`,
  ".csv": evidenceCsv,
  ".md": evidenceMarkdown,
};

const COLUMNS = [
  "kind",
  "id",
  "name",
  "owner",
  "declared by",
  "logins",
  "addresses",
  "devices",
  "allowed by",
  "until",
  "detail",
] as const;

type Row = Readonly<Partial<Record<(typeof COLUMNS)[number], string | null | undefined>>>;

/** The strings that differ between CSV and Markdown. */
interface Texts {
  readonly until: (time: string | null) => string;
  readonly devices: (uids: readonly string[]) => string;
  /** The string for an object that can have an owner, but has none. */
  readonly noOwner: string;
}

/** The kinds of objects that can have an owner. */
const OWNED: ReadonlySet<string> = new Set(
  definitions.filter(({ inputs }) => "owner" in inputs).map(({ name }) => name),
);

/** Returns the rows of each section. */
function sectionsOf(evidence: AccessEvidence, texts: Texts): Readonly<Record<string, readonly Row[]>> {
  const { readAt, service, namespace, stack, revision, access } = evidence;
  const changes = revision?.hasUncommittedChanges ? ", with uncommitted changes" : "";
  const about = {
    Time: texts.until(readAt.replace(/\.\d+/, "")),
    Service: service,
    Namespace: `${namespace.name} (${namespace.id})`,
    Stack: stack ?? "not set",
    Program: revision ? `commit ${revision.commit} of ${revision.committedAt}${changes}` : "not known",
    Gatehouse: evidence.toolVersion,
  };
  const cellsOf = ({ kind, id, name, owner, declaredBy }: EvidenceObject): Row => {
    const person = owner ?? (OWNED.has(kind) ? texts.noOwner : "");
    return { kind, id, name, owner: person, "declared by": declaredBy };
  };
  const details = (sentences: readonly string[]) => sentences.map((detail): Row => ({ detail }));
  return {
    about: Object.entries(about).map(([name, detail]) => ({ name, detail })),
    "not evaluated": details([...evidence.notEvaluated, ...evidence.unknown]),
    evaluated: details(evidence.evaluated),
    access:
      access?.map(({ subject, by, logins, addresses, devices, outcome, until }) => ({
        ...cellsOf(subject),
        logins: logins.join("; "),
        addresses: addresses.join("; "),
        devices: texts.devices(devices),
        "allowed by": `${by ? sourceText(by) : "no rule matches"}${CONDITIONS[outcome]}`,
        until: texts.until(until),
      })) ?? details(["The access is not known."]),
    objects: evidence.objects.map((object) => ({
      ...cellsOf(object),
      until: texts.until(object.until),
      detail: [
        ...(object.isManaged === false ? ["unmanaged"] : []),
        ...(object.exception ? [`excepted until ${object.exception.until}: ${object.exception.reason}`] : []),
        ...(object.ends === "by-run" ? ["ended by a run, or by gatehouse expire"] : []),
      ].join("; "),
    })),
  };
}

const sourceText = ({ kind, id, name, declaredBy }: EvidenceObject): string =>
  `${kind} ${id === name ? name : `${name} (${id})`}${declaredBy === null ? "" : `, declared by ${declaredBy}`}`;

/** Returns the evidence as CSV. The column `record` contains the section, such as `access`. */
function evidenceCsv(evidence: AccessEvidence): string {
  const names = new Map(evidence.devices.map(({ uid, name }) => [uid, name]));
  const sections = sectionsOf(evidence, {
    until: (time) => time ?? "",
    devices: (uids) => uids.map((uid) => names.get(uid) ?? uid).join("; "),
    noOwner: "",
  });
  const head = csvLine(["record", ...COLUMNS].map((column) => column.replace(" ", "_")));
  const lines = Object.entries(sections).flatMap(([record, rows]) =>
    rows.map((row) => csvLine([record, ...COLUMNS.map((column) => row[column] ?? "")])),
  );
  return head + lines.join("");
}

/** Returns the evidence as Markdown. A table omits the columns that its section does not use. */
function evidenceMarkdown(evidence: AccessEvidence): string {
  const groups = new DeviceGroups(evidence.devices);
  const sections = sectionsOf(evidence, {
    until: (time) => (time === null ? "no end" : instantText(time)),
    devices: (uids) => groups.of(uids),
    noOwner: "no owner",
  });
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |\n`;
  const parts = Object.entries(sections).map(([title, rows]) => {
    const columns = COLUMNS.filter((column) => rows.some((row) => row[column]));
    const table = [columns.map(capitalized), columns.map(() => "---")].concat(
      rows.map((row) => columns.map((column) => escaped(row[column] ?? ""))),
    );
    return `## ${capitalized(title)}\n\n${rows.length === 0 ? "None.\n" : table.map(line).join("")}`;
  });
  return [`# Access in the namespace ${escaped(evidence.namespace.name)}\n`, ...parts].join("\n");
}

/** Escapes a string so that Markdown shows it unchanged, without links, mentions and HTML. */
const escaped = (text: string): string =>
  printable(text).replaceAll(/[\\`*_{}[\]<>|#!~&@]|(?<=:)\/\/|(?<=www)\./gi, (found) => `\\${found}`);
