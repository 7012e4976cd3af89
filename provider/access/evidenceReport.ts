import { CONDITIONS, instantText, loginWord, printable } from "../words.ts";
import { line as csvLine } from "./answer.ts";
import { DeviceGroups } from "./deviceGroups.ts";
import type { AccessEvidence, EvidenceGrant, EvidenceObject } from "./evidence.ts";

/** The formats of an evidence file, by file extension. */
export const EVIDENCE_FORMATS: Readonly<Record<string, (evidence: AccessEvidence) => string>> = {
  ".json": (evidence) => `${JSON.stringify(evidence, null, 1)}\n`,
  ".csv": evidenceCsv,
  ".md": evidenceMarkdown,
};

const CSV_HEAD = [
  ...["record", "kind", "id", "name", "owner", "declared_by", "logins", "addresses", "devices"],
  ...["by_kind", "by_id", "by_name", "by_declared_by", "condition", "until", "detail"],
];

/** The evidence as CSV. The column `record` contains the section: `access` or `unmanaged`. */
function evidenceCsv(evidence: AccessEvidence): string {
  const names = new Map(evidence.devices.map(({ uid, name }) => [uid, name]));
  const row = (record: string, cells: Readonly<Record<string, string | null | undefined>>) =>
    csvLine(CSV_HEAD.map((column) => (column === "record" ? record : (cells[column] ?? ""))));
  return [
    csvLine(CSV_HEAD),
    ...aboutOf(evidence).map(([name, detail]) => row("about", { name, detail })),
    ...evidence.evaluated.map((detail) => row("evaluated", { detail })),
    ...(evidence.access ?? []).map(({ subject, by, logins, addresses, devices, outcome, until }) =>
      row("access", {
        ...{ kind: subject.kind, id: subject.id, name: subject.name, owner: subject.owner },
        declared_by: subject.declaredBy,
        logins: logins.map(loginWord).join("; "),
        addresses: addresses.join("; "),
        devices: devices.map((uid) => names.get(uid) ?? uid).join("; "),
        ...{ by_kind: by?.kind, by_id: by?.id, by_name: by?.name, by_declared_by: by?.declaredBy },
        ...{ condition: CONDITIONS[outcome].trim(), until },
      }),
    ),
    ...evidence.ends.map(({ ends, ...object }) => row("end", { ...object, detail: ends })),
    ...evidence.unmanaged.map(({ kind, id, name, exception }) =>
      row("unmanaged", { kind, id, name, until: exception?.until, detail: exception?.reason }),
    ),
    ...evidence.expired.map(({ kind, id, name, expiresAt, message }) =>
      row("expired", { kind, id, name, until: expiresAt, detail: message }),
    ),
    ...[...evidence.notEvaluated, ...evidence.unknown].map((detail) => row("not evaluated", { detail })),
  ].join("");
}

/** The evidence as a Markdown document. */
function evidenceMarkdown(evidence: AccessEvidence): string {
  const { namespace, access, ends, unmanaged, expired, notEvaluated, unknown, evaluated } = evidence;
  const groups = new DeviceGroups(evidence.devices);
  const grants = (access ?? []).map((grant): string[] => [
    titleOf(grant.subject),
    grant.subject.owner ?? "",
    grant.subject.declaredBy ?? "not known",
    grant.logins.map(loginWord).join(", "),
    grant.addresses.join(", "),
    groups.of(grant.devices),
    byText(grant),
    grant.until === null ? "no end" : instantText(grant.until),
  ]);
  const head = ["Subject", "Owner", "Declared by", "Logins", "Addresses", "Devices", "Allowed by", "Until"];
  return [
    `# Access in the namespace ${escaped(namespace.name)}`,
    table(["", ""], aboutOf(evidence)),
    "## Not evaluated",
    list([...notEvaluated, ...unknown]),
    "## Access",
    list(evaluated),
    access === null ? "The access is not known." : table(head, grants),
    "## Access that ends",
    table(
      ["Object", "Until", "Ended by"],
      ends.map((end) => [titleOf(end), instantText(end.until), END_TEXTS[end.ends] ?? end.ends]),
    ),
    "## Unmanaged objects",
    table(
      ["Object", "Exception"],
      unmanaged.map((object) => [
        titleOf(object),
        object.exception ? `until ${object.exception.until}: ${object.exception.reason}` : "",
      ]),
    ),
    "## Expired objects",
    table(
      ["Object", "Status"],
      expired.map((object) => [titleOf(object), object.message]),
    ),
  ]
    .join("\n\n")
    .concat("\n");
}

const END_TEXTS: Readonly<Record<string, string>> = {
  enforced: "the service",
  "by-run": "a run, or gatehouse expire",
};

/** Returns the facts about the reading, as pairs of name and value. */
function aboutOf(evidence: AccessEvidence): (readonly [string, string])[] {
  const { readAt, toolVersion, service, serverVersion, namespace, stack, revision } = evidence;
  const changes = revision?.hasUncommittedChanges ? ", with uncommitted changes" : "";
  return [
    ["Time", `${readAt.slice(0, 19).replace("T", " ")} UTC`],
    ["Service", `${service}, version ${serverVersion ?? "unknown"}`],
    ["Namespace", `${namespace.name} (${namespace.id})`],
    ["Stack", stack ?? "not set"],
    ["Program", revision ? `commit ${revision.commit} of ${revision.committedAt}${changes}` : "not known"],
    ["Gatehouse", toolVersion],
  ];
}

const titleOf = ({ kind, id, name }: Pick<EvidenceObject, "kind" | "id" | "name">): string =>
  id === name ? `${kind} ${name}` : `${kind} ${name} (${id})`;

function byText({ by, outcome }: EvidenceGrant): string {
  if (!by) return "no rule matches";
  return `${titleOf(by)}${by.declaredBy === null ? "" : `, declared by ${by.declaredBy}`}${CONDITIONS[outcome]}`;
}

const list = (items: readonly string[]): string =>
  items.length === 0 ? "None." : items.map((item) => `- ${escaped(item)}`).join("\n");

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return "None.";
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map((row) => line(row.map(escaped)))].join("\n");
}

/** Escapes a text so that Markdown shows it unchanged, without links, mentions and HTML. */
const escaped = (text: string): string =>
  printable(text).replaceAll(/[\\`*_{}[\]<>|#!~&@]|(?<=:)\/\/|(?<=www)\./gi, (found) => `\\${found}`);
