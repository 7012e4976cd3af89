import { createHash, randomUUID } from "node:crypto";
import type { LiveObject } from "../namespace/liveObjects.ts";
import type { ReportStyle } from "../review/report/sections.ts";
import { testPlaces } from "../review/report/testPlaces.ts";
import type { TestedNamespace } from "../review/testedNamespace.ts";
import { counted, printable } from "../words.ts";
import { changedFields } from "./changedFields.ts";
import { countedObjects, type DriftReport, type ReportedObject } from "./driftReport.ts";
import type { FoundDrift } from "./findDrift.ts";
import { driftedSentence, SENTENCES, summaryText, unmanagedSentence } from "./report/reports.ts";

/** The message of `gatehouse drift --notify json`. The message contains the first findings of the report. */
export interface DriftNotice {
  /** Version of this format. A breaking change increases the version (docs/reference/json-output.md). */
  readonly version: 1;
  /** Unique id of the message. If no response arrives, `gatehouse` sends the message again with the same id. */
  readonly id: string;
  /** Digest of the findings. Runs with equal findings have the same fingerprint. */
  readonly fingerprint: string;
  /** Time of the run, RFC 3339 in UTC. */
  readonly at: string;
  /** Reason for the message. */
  readonly event: NoticeEvent;
  readonly project: string;
  readonly stack: string;
  /** Address of the service; omitted if no address is set. */
  readonly service?: string;
  /** Summary of the run in one sentence. */
  readonly summary: string;
  /** The first findings, as sentences. */
  readonly findings: readonly string[];
  /** The number of findings that are missing in `findings`. */
  readonly more: number;
  /** Parts that could not be evaluated and may contain more findings, such as `the namespace lab`. */
  readonly notEvaluated: readonly string[];
  /** The first findings that `--repair` reverted during this run, as sentences. */
  readonly repaired: readonly string[];
  /** The number of reverted findings that are missing in `repaired`. */
  readonly moreRepaired: number;
}

/**
 * The reason for a message. `found`: there are findings, and the last message had none. `changed`: the findings differ
 * from the last message. `resolved`: no findings remain. `repaired`: the findings are the same as in the last message,
 * but this run reverted other findings. `unclear`: there are no findings, but the check is incomplete.
 */
export type NoticeEvent = "found" | "changed" | "resolved" | "repaired" | "unclear";

/** The results of a `drift` run. A message is created from these results. */
export interface NotedRun {
  readonly found: FoundDrift;
  readonly tests?: TestedNamespace | undefined;
  readonly repaired?: DriftReport | undefined;
}

/** Data about the last message. `drift` stores the data for its next run. */
export type NoticeKept = Pick<DriftNotice, "fingerprint" | "at">;

/** The maximum number of findings in a message, and the maximum length of one finding in characters. */
const [FINDINGS_MAX, FINDING_MAX] = [20, 500];

/**
 * Returns the message of a run. Returns undefined if the findings are the same as in the last message and the run
 * reverted nothing.
 * @param last the fingerprint of the last message; undefined if there is no earlier message
 */
export const driftNotice = (run: NotedRun, last: string | undefined): DriftNotice | undefined =>
  noticeOf(run, last, SENTENCES);

function noticeOf(run: NotedRun, last: string | undefined, style: ReportStyle): DriftNotice | undefined {
  const { report, notEvaluated } = run.found;
  const fingerprint = fingerprintOf(run);
  const before = last ?? NO_FINDINGS;
  const reverted = sentencesOf(revertedBy(run), style);
  if (fingerprint === before && reverted.length === 0) return undefined;
  const findings = [...sentencesOf(countedOf(report), style), ...testSentences(run.tests, style)];
  const { project, stack, service } = report;
  const first = (sentences: readonly string[]) =>
    sentences.slice(0, FINDINGS_MAX).map((sentence) => shortened(sentence, FINDING_MAX));
  return {
    version: 1,
    id: randomUUID(),
    fingerprint,
    at: new Date().toISOString(),
    event: eventOf(run, fingerprint, before),
    project,
    stack,
    ...(service !== undefined && { service }),
    summary: summaryOf(run),
    findings: first(findings),
    more: Math.max(0, findings.length - FINDINGS_MAX),
    notEvaluated: notEvaluated.map(style.text),
    repaired: first(reverted),
    moreRepaired: Math.max(0, reverted.length - FINDINGS_MAX),
  };
}

/** Maximum length of a Slack message in characters. Discord accepts the same format and rejects longer messages. */
const SLACK_MAX = 1_900;
const SLACK_FINDING_MAX = 300;

/**
 * Returns the message of a run in the format of Slack's incoming webhooks, which many other services accept too.
 * Returns undefined in the same cases as {@link driftNotice}.
 */
export function slackMessage(run: NotedRun, last: string | undefined): { readonly text: string } | undefined {
  const notice = noticeOf(run, last, SLACK_STYLE);
  if (!notice) return undefined;
  const { event, project, stack, service, summary, findings, more, notEvaluated, repaired, moreRepaired } =
    notice;
  const head = [
    `*${TITLES[event]}: ${slackName(`${project}/${stack}`)}*`,
    `${summary}${service === undefined ? "" : ` (${slackName(service)})`}`,
    ...(notEvaluated.length > 0 ? [`Not evaluated: ${notEvaluated.join(", ")}`] : []),
  ];
  const title = head.map((line) => shortened(line, SLACK_FINDING_MAX)).join("\n");
  const space = SLACK_MAX - title.length;
  // Open findings are listed first. If the run reverted findings, space is reserved at least for the title of their
  // list and for the number of reverted findings.
  const open = bulleted("", findings, more, space - (repaired.length > 0 ? REVERTED.length + REST_MAX : 0));
  return { text: title + open + bulleted(REVERTED, repaired, moreRepaired, space - open.length) };
}

const REVERTED = "\nReverted by this run:";

const restText = (count: number): string => (count > 0 ? `\n… and ${count} more` : "");

const REST_MAX = restText(999_999).length;

/**
 * Returns a list of the first sentences that fit into `space` characters. The last line is the number of omitted
 * sentences.
 */
function bulleted(title: string, sentences: readonly string[], more: number, space: number): string {
  if (sentences.length === 0) return "";
  let text = title;
  for (const [index, sentence] of sentences.entries()) {
    const next = `${text}\n• ${shortened(sentence, SLACK_FINDING_MAX)}`;
    if (next.length + REST_MAX > space) return text + restText(more + sentences.length - index);
    text = next;
  }
  return text + restText(more);
}

/** Returns the data about a run that `drift` stores for its next run. */
export const keptOf = (run: NotedRun): NoticeKept => ({
  fingerprint: fingerprintOf(run),
  at: new Date().toISOString(),
});

const TITLES: Readonly<Record<NoticeEvent, string>> = {
  found: "Drift",
  changed: "Drift changed",
  resolved: "Drift resolved",
  repaired: "Drift repaired",
  unclear: "Drift check incomplete",
};

function eventOf({ found, tests }: NotedRun, fingerprint: string, before: string): NoticeEvent {
  // If the findings are the same as in the last message, the only reason for a message is that the run reverted other
  // findings.
  if (fingerprint === before) return "repaired";
  if (fingerprint === NO_FINDINGS) return "resolved";
  const { drifted, expiring, open } = countedOf(found.report);
  const count = drifted.length + expiring.length + open.length + failing(tests).length;
  if (count === 0) return "unclear";
  return before === NO_FINDINGS ? "found" : "changed";
}

type Counted = Pick<DriftReport, "drifted" | "expiring"> & { readonly open: readonly ReportedObject[] };

const countedOf = (report: DriftReport): Counted => ({
  drifted: report.drifted,
  expiring: report.expiring,
  open: countedObjects(report),
});

/**
 * Returns the reverted findings: the findings before the repair that no longer exist after the repair. Some findings
 * may remain, because a repair can fail in part.
 */
function revertedBy({ found, repaired }: NotedRun): Counted {
  if (!repaired) return { drifted: [], expiring: [], open: [] };
  const [before, left] = [countedOf(repaired), countedOf(found.report)];
  const urns = new Set(left.drifted.map(({ urn }) => urn));
  const nameOf = ({ tenant, kind, id }: ReportedObject) => JSON.stringify([tenant, kind, id]);
  const names = new Set(left.open.map(nameOf));
  return {
    drifted: before.drifted.filter(({ urn }) => !urns.has(urn)),
    expiring: [],
    open: before.open.filter((object) => !names.has(nameOf(object))),
  };
}

/**
 * Returns a digest of the findings: the objects and their values. The digest excludes the effects on access, since each
 * new device changes these effects.
 */
function fingerprintOf({ found: { report, unmanaged, notEvaluated }, tests }: NotedRun): string {
  const open = report.unmanagedMode === "fail" ? unmanaged : [];
  const findings = [
    ...report.drifted.map((step) => ["drifted", step.urn, step.op, changedFields(step)]),
    ...open.map((object) => ["unmanaged", object.definition.name, object.id, declaredState(object)]),
    ...report.expiring.map(({ tenant, message }) => ["expiring", tenant, message]),
    ...failing(tests).map(({ name, file, namespace }) => {
      const isMain = namespace === undefined || namespace.tenant === tests?.tenant;
      return ["policy test", file, name, ...(isMain ? [] : [namespace.tenant])];
    }),
    ...notEvaluated.map((what) => ["notEvaluated", what]),
  ];
  return digestOf(findings.map((finding) => JSON.stringify(finding)).sort());
}

const digestOf = (lines: readonly string[]): string =>
  createHash("sha256").update(JSON.stringify(lines)).digest("hex").slice(0, 32);

const NO_FINDINGS = digestOf([]);

/** Returns the fields of an object that a program can declare. Omits other fields, such as the time of the last use. */
const declaredState = ({ definition, state = {} }: LiveObject) =>
  Object.keys(definition.inputs).map((field) => [field, state[field]]);

const failing = (tests: TestedNamespace | undefined) => tests?.tests.filter(({ ok }) => !ok) ?? [];

function summaryOf({ found: { report, notEvaluated }, tests }: NotedRun): string {
  const failed = failing(tests).length;
  return [
    summaryText(report),
    ...(failed > 0 ? [`${counted(failed, "policy test")} fail.`] : []),
    ...(notEvaluated.length > 0 ? ["The check is incomplete."] : []),
  ].join(" ");
}

const sentencesOf = ({ drifted, expiring, open }: Counted, style: ReportStyle): string[] => [
  ...drifted.map((resource) => driftedSentence(resource, style)),
  ...open.map((object) => unmanagedSentence(object, style)),
  ...expiring.map(({ message }) => style.text(message)),
];

function testSentences(tests: TestedNamespace | undefined, style: ReportStyle): string[] {
  const placeOf = testPlaces(tests?.tests ?? []);
  return failing(tests).map(
    (test) => `the policy test ${style.name(test.name)} fails${style.text(placeOf(test))}`,
  );
}

/** Shortens a sentence. Does not split an escape sequence of {@link slackText}, and closes an open backtick. */
function shortened(sentence: string, max: number): string {
  if (sentence.length <= max) return sentence;
  const cut = sentence
    .slice(0, max)
    .toWellFormed()
    .replace(/(&\w{0,3}|@|:\/\/|www\.)$/i, "");
  return `${cut}…${(cut.match(/`/g) ?? []).length % 2 === 1 ? "`" : ""}`;
}

/**
 * Escapes a string for Slack, and for services that accept the format of Slack. The result contains no links and no
 * mentions.
 */
const slackText = (text: string): string =>
  printable(text)
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll(/@|(?<=:)\/\/|(?<=www)\./gi, `$&${NO_LINK}`);

const NO_LINK = "\u200b";

const slackName = (name: string): string => `\`${slackText(name).replaceAll("`", "'")}\``;

const SLACK_STYLE: ReportStyle = { ...SENTENCES, name: slackName, text: slackText };
