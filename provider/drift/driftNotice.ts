import { createHash, randomUUID } from "node:crypto";
import type { LiveObject } from "../estate/liveObjects.ts";
import type { ReportStyle } from "../review/report/sections.ts";
import type { TestedNamespace } from "../review/testedNamespace.ts";
import { counted, printable } from "../words.ts";
import { changedFields } from "./changedFields.ts";
import { countedObjects, type DriftReport, type FoundObject } from "./driftReport.ts";
import type { FoundDrift } from "./findDrift.ts";
import { driftedSentence, foundSentence, SENTENCES, summaryText } from "./report/reports.ts";

/** What `gatehouse drift --notify json` sends. It holds no more than the report, and of that the first findings. */
export interface DriftNotice {
  /** Raised by a change of this format that breaks programs which read it (docs/review-json.md). */
  readonly version: 1;
  /** Another one for each message: a receiver that gets one twice, as its answer was lost, knows it by this. */
  readonly id: string;
  /** The same for the same findings, whenever they are found. */
  readonly fingerprint: string;
  /** When it was found, RFC 3339 in UTC. */
  readonly at: string;
  readonly event: NoticeEvent;
  readonly project: string;
  readonly stack: string;
  /** Address of the service; left out where none is set. */
  readonly service?: string;
  /** All of it in one sentence. */
  readonly summary: string;
  /** The first of what counts, as sentences. */
  readonly findings: readonly string[];
  /** How many findings there are beside these. */
  readonly more: number;
  /** What could not be looked into, where there may be findings too, such as `the namespace lab`. */
  readonly unread: readonly string[];
  /** The first of what `--repair` undid in this run, as sentences. */
  readonly repaired: readonly string[];
  /** How many more it undid. */
  readonly moreRepaired: number;
}

/**
 * Findings where there were none, others than before, none any more, the same as before but for what the run itself undid, or
 * none, where not all could be looked into.
 */
export type NoticeEvent = "found" | "changed" | "resolved" | "repaired" | "unclear";

export interface NotedRun {
  readonly found: FoundDrift;
  readonly tests?: TestedNamespace | undefined;
  readonly repaired?: DriftReport | undefined;
}

export type NoticeKept = Pick<DriftNotice, "fingerprint" | "at">;

/** Most findings that a message names, and the longest of them, in characters. */
const [FINDINGS_MAX, FINDING_MAX] = [20, 500];

/**
 * The message of a run; undefined if it found the same as the last message.
 * @param last the fingerprint of the last message; undefined for none
 */
export const driftNotice = (run: NotedRun, last: string | undefined): DriftNotice | undefined =>
  noticeOf(run, last, SENTENCES);

function noticeOf(run: NotedRun, last: string | undefined, style: ReportStyle): DriftNotice | undefined {
  const { report, unread } = run.found;
  const fingerprint = fingerprintOf(run);
  const before = last ?? NOTHING;
  const undone = sentencesOf(undoneBy(run), style);
  if (fingerprint === before && undone.length === 0) return undefined;
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
    ...{ project, stack },
    ...(service !== undefined && { service }),
    summary: summaryOf(run),
    findings: first(findings),
    more: Math.max(0, findings.length - FINDINGS_MAX),
    unread: unread.map(style.text),
    repaired: first(undone),
    moreRepaired: Math.max(0, undone.length - FINDINGS_MAX),
  };
}

/** Most characters of a message in Slack's form, which Discord takes too, and cuts no longer one but refuses it. */
const SLACK_MAX = 1_900;
const SLACK_FINDING_MAX = 300;

/** The same as {@link driftNotice}, as an incoming webhook of Slack takes it, and of others that understand Slack's form. */
export function slackMessage(run: NotedRun, last: string | undefined): { readonly text: string } | undefined {
  const notice = noticeOf(run, last, SLACK_STYLE);
  if (!notice) return undefined;
  const { event, project, stack, service, summary, findings, more, unread, repaired, moreRepaired } = notice;
  const head = [
    `*${TITLES[event]}: ${slackName(`${project}/${stack}`)}*`,
    `${summary}${service === undefined ? "" : ` (${slackName(service)})`}`,
    ...(unread.length > 0 ? [`Not looked into: ${unread.join(", ")}`] : []),
  ];
  const title = head.map((line) => shortened(line, SLACK_FINDING_MAX)).join("\n");
  const room = SLACK_MAX - title.length;
  // What is open comes first, and leaves room for how much was undone.
  const open = bulleted("", findings, more, room - (repaired.length > 0 ? UNDONE.length + REST_MAX : 0));
  return { text: title + open + bulleted(UNDONE, repaired, moreRepaired, room - open.length) };
}

const UNDONE = "\nUndone by this run:";

const restText = (count: number): string => (count > 0 ? `\n… and ${count} more` : "");

const REST_MAX = restText(999_999).length;

/** As many of the sentences as there is room for, and how many are omitted. */
function bulleted(title: string, sentences: readonly string[], more: number, room: number): string {
  if (sentences.length === 0) return "";
  let text = title;
  for (const [index, sentence] of sentences.entries()) {
    const next = `${text}\n• ${shortened(sentence, SLACK_FINDING_MAX)}`;
    if (next.length + REST_MAX > room) return text + restText(more + sentences.length - index);
    text = next;
  }
  return text + restText(more);
}

export const keptOf = (run: NotedRun): NoticeKept => ({
  fingerprint: fingerprintOf(run),
  at: new Date().toISOString(),
});

const TITLES: Readonly<Record<NoticeEvent, string>> = {
  found: "Drift",
  changed: "Drift, other than before",
  resolved: "No drift any more",
  repaired: "Drift repaired",
  unclear: "Not all could be looked into",
};

function eventOf({ found, tests }: NotedRun, fingerprint: string, before: string): NoticeEvent {
  // Nobody would be told of the same again but for what was undone meanwhile.
  if (fingerprint === before) return "repaired";
  if (fingerprint === NOTHING) return "resolved";
  const { drifted, expiring, open } = countedOf(found.report);
  const count = drifted.length + expiring.length + open.length + failing(tests).length;
  if (count === 0) return "unclear";
  return before === NOTHING ? "found" : "changed";
}

type Counted = Pick<DriftReport, "drifted" | "expiring"> & { readonly open: readonly FoundObject[] };

const countedOf = (report: DriftReport): Counted => ({
  drifted: report.drifted,
  expiring: report.expiring,
  open: countedObjects(report),
});

/** What a run found before its repair, and not after it: the credential may not remove everything. */
function undoneBy({ found, repaired }: NotedRun): Counted {
  if (!repaired) return { drifted: [], expiring: [], open: [] };
  const [before, left] = [countedOf(repaired), countedOf(found.report)];
  const urns = new Set(left.drifted.map(({ urn }) => urn));
  const nameOf = ({ tenant, kind, id }: FoundObject) => JSON.stringify([tenant, kind, id]);
  const names = new Set(left.open.map(nameOf));
  return {
    drifted: before.drifted.filter(({ urn }) => !urns.has(urn)),
    expiring: [],
    open: before.open.filter((object) => !names.has(nameOf(object))),
  };
}

/**
 * A digest of what was found: which objects, and how they are, but not what follows from them, which changes with every
 * device that comes.
 */
function fingerprintOf({ found: { report, unmanaged, unread }, tests }: NotedRun): string {
  const open = report.unmanagedCounts === "fail" ? unmanaged : [];
  const found = [
    ...report.drifted.map((step) => ["drifted", step.urn, step.op, changedFields(step)]),
    ...open.map((object) => ["unmanaged", object.definition.name, object.id, declaredState(object)]),
    ...report.expiring.map(({ tenant, message }) => ["expiring", tenant, message]),
    ...failing(tests).map(({ name, file }) => ["policy test", file, name]),
    ...unread.map((what) => ["unread", what]),
  ];
  return digestOf(found.map((finding) => JSON.stringify(finding)).sort());
}

const digestOf = (lines: readonly string[]): string =>
  createHash("sha256").update(JSON.stringify(lines)).digest("hex").slice(0, 32);

const NOTHING = digestOf([]);

/** What a program would declare of an object; not when it was used last. */
const declaredState = ({ definition, state = {} }: LiveObject) =>
  Object.keys(definition.inputs).map((field) => [field, state[field]]);

const failing = (tests: TestedNamespace | undefined) => tests?.tests.filter(({ ok }) => !ok) ?? [];

function summaryOf({ found: { report, unread }, tests }: NotedRun): string {
  const failed = failing(tests).length;
  return [
    summaryText(report),
    ...(failed > 0 ? [`${counted(failed, "policy test")} fail.`] : []),
    ...(unread.length > 0 ? ["Not all could be looked into."] : []),
  ].join(" ");
}

const sentencesOf = ({ drifted, expiring, open }: Counted, style: ReportStyle): string[] => [
  ...drifted.map((one) => driftedSentence(one, style)),
  ...open.map((one) => foundSentence(one, style)),
  ...expiring.map(({ message }) => style.text(message)),
];

const testSentences = (tests: TestedNamespace | undefined, style: ReportStyle): string[] =>
  failing(tests).map(({ name }) => `the policy test ${style.name(name)} fails`);

/** A sentence that is cut ends neither within what {@link slackText} writes for a character, nor within a name in backticks. */
function shortened(sentence: string, max: number): string {
  if (sentence.length <= max) return sentence;
  const cut = sentence
    .slice(0, max)
    .toWellFormed()
    .replace(/(&\w{0,3}|@|:\/\/|www\.)$/i, "");
  return `${cut}…${(cut.match(/`/g) ?? []).length % 2 === 1 ? "`" : ""}`;
}

/** Nothing in it is a link, or calls somebody: neither for Slack nor for those that take its form. */
const slackText = (text: string): string =>
  printable(text)
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll(/@|(?<=:)\/\/|(?<=www)\./gi, `$&${NO_LINK}`);

const NO_LINK = "\u200b";

const slackName = (name: string): string => `\`${slackText(name).replaceAll("`", "'")}\``;

const SLACK_STYLE: ReportStyle = { ...SENTENCES, name: slackName, text: slackText };
