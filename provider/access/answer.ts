import {
  type AccessDevice,
  type AccessKey,
  type AccessMode,
  type AccessPolicy,
  type AccessRule,
  type AccessSubject,
  ANY_LOGIN,
  type EvaluatedLogins,
  type Grant,
  grantsOf,
  type Outcome,
  otherAddressOf,
  type Principal,
  type SubjectFacts,
  subjectFacts,
} from "@gatehouse-access/sdk/policy";
import type { NamespaceState } from "../namespace/namespaceState.ts";
import {
  addressWord,
  CONDITIONS,
  capitalized,
  instantText,
  listText,
  loginWord,
  printable,
  ruleText,
  subjectText,
  tableLines,
} from "../words.ts";
import { DeviceGroups } from "./deviceGroups.ts";
import { type AccessExplanation, accessExplanation, explanationText } from "./explanation.ts";
import { type ExplainedIdentity, explainedIdentity, identityExplanationText } from "./identityExplanation.ts";
import {
  type AccessInquiry,
  type AccessView,
  accessView,
  evaluatedLines,
  standInOf,
  unknownLines,
} from "./inquiry.ts";

export interface AccessAnswer {
  /**
   * The output in chunks. Each chunk is generated when the caller reads it, so a large report is never in memory as a
   * whole.
   */
  readonly output: Iterable<string>;
  /** Remarks that `gatehouse access` prints to standard error, since CSV output cannot contain them. */
  readonly remarks: readonly string[];
  /** True if the explained login is refused, or if the decision or the access is not known. */
  readonly refused: boolean;
  readonly notEvaluated: boolean;
}

/**
 * Lists the grants in a namespace, or explains one login. If the access is not known, the answer contains only the
 * reason.
 * @throws AccessInquiryError if a selector has no match, or if `explain` does not match exactly one key and one device
 */
export function accessAnswer(estate: NamespaceState, inquiry: AccessInquiry): AccessAnswer {
  if (estate.accessUnknown !== undefined) return unknownAnswer(estate, inquiry);
  const view = accessView(estate, inquiry);
  const answer = { remarks: [], refused: false, notEvaluated: estate.notEvaluated.length > 0 };
  if (inquiry.explain) return { ...answer, ...explained(view) };
  if (inquiry.format === "json") return { ...answer, output: accessJson(view) };
  if (inquiry.format === "text") return { ...answer, output: accessTable(view) };
  return { ...answer, output: accessCsv(view), remarks: [...evaluatedLines(view), ...unknownLines(view)] };
}

function unknownAnswer(estate: NamespaceState, inquiry: AccessInquiry): AccessAnswer {
  const { tenant: namespace, notEvaluated, unknown, accessUnknown } = estate;
  const others = notEvaluated.filter((sentence) => sentence !== accessUnknown);
  const lines = [
    printable(`UNKNOWN: ${accessUnknown}`),
    ...unknownLines({ estate: { notEvaluated: others, unknown } }),
  ];
  const answer = { output: [], remarks: [], refused: true, notEvaluated: true };
  if (inquiry.format === "csv") return { ...answer, remarks: lines };
  if (inquiry.format === "text") return { ...answer, output: [`${lines.join("\n")}\n`] };
  if (!inquiry.explain) return { ...answer, output: accessJson(accessView(estate, inquiry)) };
  const at = (inquiry.at ?? new Date()).toISOString();
  const report: AccessExplanationReport = { namespace, at, notEvaluated, unknown, notes: [], allowed: null };
  return { ...answer, output: [`${JSON.stringify(report, null, 1)}\n`] };
}

function explained(view: AccessView): Pick<AccessAnswer, "output" | "refused"> {
  const { tenant: namespace, notEvaluated, unknown } = view.estate;
  const at = view.access.time.toISOString();
  const { fields, text } = answersOf(view).explained(view);
  const about = { namespace, at, notEvaluated, unknown, notes: view.notes };
  const report: AccessExplanationReport = { ...about, ...fields };
  return {
    output: [view.inquiry.format === "json" ? `${JSON.stringify(report, null, 1)}\n` : text],
    refused: !report.allowed,
  };
}

/** The parts of the answers that differ by access mode. */
interface ModeAnswers<S extends AccessSubject = AccessSubject> {
  /** The CSV columns about the subject, and the CSV columns about the object that allows the access. */
  readonly csvColumns: { readonly subject: readonly string[]; readonly object: readonly string[] };
  subjectCells(subject: SubjectFacts): readonly string[];
  objectCells(row: AccessRow): readonly string[];
  /** Returns the table cell for the object that allows the access. */
  objectText(row: AccessRow): string;
  /** Returns the report fields for the subjects, and for the rules or policies that allow or deny their logins. */
  policyFields(view: AccessView<S>): Pick<AccessReport, "keys" | "rules" | "principals" | "policies">;
  grant(row: AccessRow, fields: Pick<AccessGrant, "logins" | "addresses" | "rule" | "until">): AccessGrant;
  explained(view: AccessView<S>): {
    readonly fields: Pick<AccessExplanationReport, "allowed" | "identity">;
    readonly text: string;
  };
}

const LEGACY: ModeAnswers<AccessKey> = {
  csvColumns: {
    subject: ["key_fingerprint", "key_name"],
    object: ["rule_id", "rule_action", "rule_priority"],
  },
  subjectCells: ({ id, name }) => [id, name],
  objectCells: ({ rule }) => [rule?.id ?? "", rule?.action ?? "", String(rule?.priority ?? "")],
  objectText: ({ rule }) => (rule ? ruleText(rule) : "none matches"),
  policyFields: ({ subjects, estate }) => ({ keys: subjects, rules: estate.policy.rules }),
  grant: ({ subject, devices }, fields) => ({ key: subjectFacts(subject).id, ...fields, devices }),
  explained(view) {
    const explanation = accessExplanation(view);
    return { fields: explanation, text: explanationText(view, explanation) };
  },
};

const IDENTITY: ModeAnswers<Principal> = {
  csvColumns: {
    subject: ["principal_id", "principal_name", "principal_kind"],
    object: ["policy_id", "policy_name", "outcome"],
  },
  subjectCells: ({ id, name, kind }) => [id, name, kind],
  objectCells: ({ policy, outcome }) => [policy?.id ?? "", policy?.name ?? "", outcome],
  objectText: ({ policy, outcome }) => `${policy?.name}${CONDITIONS[outcome]}`,
  policyFields: ({ subjects, access, estate }) => ({
    keys: [],
    rules: estate.policy.rules,
    principals: subjects,
    policies: access.decider.policies,
  }),
  grant: ({ subject, policy, outcome, devices }, fields) => ({
    key: null,
    principal: subjectFacts(subject).id,
    ...fields,
    ...(policy && { policy: policy.id }),
    ...(outcome !== "deny" && { outcome }),
    devices,
  }),
  explained(view) {
    const identity = explainedIdentity(view);
    const { outcome } = identity;
    const allowed = outcome === "unknown" ? null : outcome !== "deny";
    return { fields: { allowed, identity }, text: identityExplanationText(view, identity) };
  },
};

const ANSWERS: Readonly<Record<AccessMode, ModeAnswers>> = { legacy: LEGACY, identity: IDENTITY };

/** Returns the parts of the answers for the access mode of a namespace. */
const answersOf = ({ access }: AccessView): ModeAnswers => ANSWERS[access.decider.mode];

/**
 * The access that one subject has through one rule or policy. Every combination of a listed login, address and device
 * is allowed.
 */
export type AccessRow = Omit<Grant, "login"> & { readonly logins: string[] };

/** Generates the rows of the access report. Keeps only the rows of one subject in memory. */
export function* accessRows({ access, subjects }: AccessView): Generator<AccessRow> {
  for (const subject of subjects) {
    const rows: AccessRow[] = [];
    for (const { login, ...grant } of grantsOf(access, [subject])) {
      const same = rows.find(
        ({ rule, policy, outcome, until, addresses, devices }) =>
          rule === grant.rule &&
          until === grant.until &&
          policy === grant.policy &&
          outcome === grant.outcome &&
          isSame(addresses, grant.addresses) &&
          isSame(devices, grant.devices),
      );
      if (same) same.logins.push(login);
      else rows.push({ ...grant, logins: [login] });
    }
    yield* rows;
  }
}

const isSame = (left: readonly string[], right: readonly string[]): boolean =>
  left.length === right.length && left.every((text, index) => text === right[index]);

const NO_END = "no end";
/** Maximum number of device uids in the cache for descriptions of device sets. */
const HELD_MAX = 1_000_000;
const EXCEPTIONS_MAX = 3;

function* accessTable(view: AccessView): Generator<string> {
  yield `${evaluatedLines(view).join("\n")}\n\n`;
  const { rows, useful } = tableOf(view);
  // Most namespaces have no access with an expiry time, so the last column is often omitted.
  const columns = rows.some((row) => row.at(-1) !== NO_END) ? undefined : -1;
  const { selector, objectInShort, subjectInShort } = view.access.decider.nouns;
  const by = `by ${objectInShort}`;
  const head = [selector, "login", "from", "devices", by, "until"].map((title) => title.toUpperCase());
  if (rows.length > 0) yield* tableLines([head, ...rows].map((row) => row.slice(0, columns)));
  const useless = view.subjects.filter((subject) => !useful.has(subject)).map(subjectText);
  const [one, several] = subjectInShort;
  if (rows.length === 0)
    yield `No ${one} reaches any of these devices with these login names from these addresses.\n`;
  else if (useless.length > 0)
    yield `\n${capitalized(several)} without access to these devices: ${printable(listText(useless))}\n`;
  const unknown = unknownLines(view);
  if (unknown.length > 0) yield `\n${unknown.join("\n")}\n`;
}

/** Returns the rows of the table below its header, and the subjects that have access. */
function tableOf(view: AccessView) {
  const summary = summaries(view);
  const useful = new Set<AccessSubject>();
  const { objectText } = answersOf(view);
  const rows = Array.from(accessRows(view), (row) => {
    const { subject, logins, addresses, devices, until } = row;
    useful.add(subject);
    return [
      subjectText(subject),
      listText(logins.map(loginWord)),
      addressText(addresses, view),
      summary(devices),
      objectText(row),
      until === undefined ? NO_END : instantText(until),
    ].map(printable);
  });
  return { rows, useful };
}

function addressText(addresses: readonly string[], { inquiry, evaluated }: AccessView): string {
  const other = standInOf({ inquiry, evaluated });
  if (other === "") return listText(addresses);
  if (addresses.length === evaluated.addresses.length) return "any";
  const others = evaluated.addresses.filter((address) => !addresses.includes(address));
  return addresses.includes(other) && others.length <= EXCEPTIONS_MAX
    ? `any except ${others.join(", ")}`
    : listText(addresses.map((address) => addressWord(address, other)));
}

/**
 * Returns a function that describes a set of devices. The function caches its descriptions, since many keys have access
 * to the same devices.
 */
function summaries({ estate }: AccessView): (uids: readonly string[]) => string {
  const groups = new DeviceGroups(estate.policy.devices);
  let held = 0;
  const known = new Map<string, { readonly uids: readonly string[]; readonly text: string }[]>();
  return (uids) => {
    const name = `${uids.length} ${uids[0]} ${uids.at(-1)}`;
    const alike = known.get(name) ?? [];
    const same = alike.find((other) => uids.every((uid, index) => uid === other.uids[index]));
    if (same) return same.text;
    const text = groups.of(uids);
    held += uids.length;
    if (held > HELD_MAX) {
      known.clear();
      held = uids.length;
    }
    known.set(name, [...(known.get(name) ?? []), { uids, text }]);
    return text;
  };
}

/**
 * Generates CSV (RFC 4180) with one line for each combination of subject, login name, group of addresses and device.
 */
function* accessCsv(view: AccessView): Generator<string> {
  const names = new Map(view.devices.map(({ uid, name }) => [uid, name]));
  const { csvColumns, subjectCells, objectCells } = answersOf(view);
  const shared = ["login", "addresses", "device_uid", "device_name"];
  yield line([...csvColumns.subject, ...shared, ...csvColumns.object, "until"]);
  for (const row of accessRows(view)) {
    const { subject, logins, addresses, devices, until = "" } = row;
    const [who, by] = [subjectCells(subjectFacts(subject)), objectCells(row)];
    for (const login of logins) {
      const about = [...who, login, addresses.join(" ")];
      yield devices.map((uid) => line([...about, uid, names.get(uid) ?? "", ...by, until])).join("");
    }
  }
}

/** Returns a CSV line (RFC 4180). Spreadsheet programs treat all of its cells as text. */
export const line = (cells: readonly string[]): string => `${cells.map(cell).join(",")}\r\n`;

/** Characters with which a formula begins in spreadsheet programs, including their full-width forms. */
const FORMULA = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

/** Returns a CSV cell. Puts an apostrophe before a formula, so that spreadsheet programs treat the cell as text. */
function cell(text: string): string {
  const harmless = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

/** The access of one key or principal. Every combination of a listed login name, address and device is allowed. */
export interface AccessGrant {
  /** Fingerprint of the key; null in identity mode. */
  readonly key: string | null;
  /** Id of the user or service account. Present only in identity mode. */
  readonly principal?: string;
  /** The login names of the sessions. */
  readonly logins: readonly string[];
  /** The client addresses of the sessions. */
  readonly addresses: readonly string[];
  /**
   * Id of the rule that allows the access. Null in identity mode. Also null if no rule matches, since the service
   * allows a login by default.
   */
  readonly rule: string | null;
  /** Id of the access policy that allows the access. Present only in identity mode. */
  readonly policy?: string;
  /**
   * Condition of the access. Present only in identity mode. `unknown`: the credential cannot read whether the user has
   * an SSH key.
   */
  readonly outcome?: Exclude<Outcome, "deny">;
  /** The expiry time of the access, in RFC 3339; null if the access does not expire. */
  readonly until: string | null;
  /** Uids of the devices. */
  readonly devices: readonly string[];
}

/** The fields about the namespace and the inquiry that all JSON reports of `gatehouse access` have. */
interface AccessAnswered {
  /** Id of the namespace. */
  readonly namespace: string;
  /** The time for which logins are evaluated, in RFC 3339: the time of the command, or the time of `--at`. */
  readonly at: string;
  /** Parts of the namespace that could not be read, as sentences. The report does not cover these parts. */
  readonly notEvaluated: readonly string[];
  /**
   * Other data that could not be read, such as the list of sessions, as sentences. `notEvaluated` contains the parts of
   * the namespace that could not be read.
   */
  readonly unknown: readonly string[];
  /** Notes on how ambiguous selectors were interpreted, as sentences. */
  readonly notes: readonly string[];
}

/** The output of `gatehouse access --json`: the access in a namespace. */
export interface AccessReport extends AccessAnswered {
  /** The login names and addresses that were evaluated. */
  readonly evaluated: Omit<EvaluatedLogins, "otherAddress"> & {
    /** The address that represents all addresses that no rule mentions. */
    readonly anyAddress: string;
    /** The login name that represents all login names that no pattern mentions. */
    readonly anyLogin: string;
  };
  /** The number of recent sessions that were searched for login names and client addresses. */
  readonly sessions: number;
  /** The devices that the inquiry matches. */
  readonly devices: readonly AccessDevice[];
  /** The keys that the inquiry matches. Empty in identity mode, in which keys have no effect. */
  readonly keys: readonly AccessKey[];
  /** All rules of the namespace. */
  readonly rules: readonly AccessRule[];
  /** The users and service accounts that the inquiry matches. Present only in identity mode. */
  readonly principals?: readonly Principal[];
  /** All access policies of the namespace. Present only in identity mode. */
  readonly policies?: readonly AccessPolicy[];
  /** The access that the subjects have. Null if the access is not known: `notEvaluated` then contains the reason. */
  readonly grants: readonly AccessGrant[] | null;
}

/**
 * The output of `gatehouse access --explain --json`: the reasons why one login is allowed or refused. If the access is
 * not known, `allowed` is null, and the report has only this field and the fields about the namespace.
 */
export interface AccessExplanationReport extends Partial<Omit<AccessExplanation, "allowed">>, AccessAnswered {
  /**
   * True if the login is allowed. In identity mode, also true if the login is allowed after a re-authentication or
   * after the approval of an SSH key. Null if the decision is not known: `notEvaluated` or `unknown` then contains the
   * reason.
   */
  readonly allowed: boolean | null;
  /** The reasons for the decision in identity mode. A report with this field has no fields about keys and rules. */
  readonly identity?: ExplainedIdentity;
}

/** Generates an {@link AccessReport} as JSON, with one line for each element of `grants`. */
function* accessJson(view: AccessView): Generator<string> {
  const { estate, devices, evaluated, notes } = view;
  const answers = answersOf(view);
  const head: Omit<AccessReport, "grants"> = {
    namespace: estate.tenant,
    at: view.access.time.toISOString(),
    evaluated: {
      logins: evaluated.logins,
      addresses: evaluated.addresses,
      anyAddress: otherAddressOf(evaluated),
      anyLogin: ANY_LOGIN,
    },
    sessions: estate.seen.sessions,
    notEvaluated: estate.notEvaluated,
    unknown: estate.unknown,
    notes,
    devices,
    ...answers.policyFields(view),
  };
  yield `${JSON.stringify(head, null, 1).slice(0, -2)},\n "grants": `;
  if (estate.accessUnknown !== undefined) return yield "null\n}\n";
  yield "[";
  let separator = "\n";
  for (const row of accessRows(view)) {
    const { logins, addresses, rule, until = null } = row;
    const grant = answers.grant(row, { logins, addresses, rule: rule?.id ?? null, until });
    yield `${separator}  ${JSON.stringify(grant)}`;
    separator = ",\n";
  }
  yield "\n ]\n}\n";
}
