import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { EngineError } from "../engine/index.ts";
import type { LiveObject } from "../inventory/liveObjects.ts";
import { PLAIN, type ReportStyle } from "../review/report/sections.ts";
import type { TestedNamespace } from "../review/testedNamespace.ts";
import { counted } from "../review/words/phrases.ts";
import { printable } from "../review/words/printable.ts";
import { changedFields } from "./changedFields.ts";
import { type DriftReport, openObjects } from "./driftReport.ts";
import type { FoundDrift } from "./findDrift.ts";
import { summaryText } from "./report/reports.ts";
import { driftedSentence, foundSentence } from "./report/sections.ts";

/** What `gatehouse drift --notify json` sends. It holds no more than the report, and of that the first findings. */
export interface DriftNotice {
  /** Raised by a change of this format that breaks programs which read it (docs/review-json.md). */
  readonly version: 1;
  /** The same for the same findings: a receiver that gets a message twice knows it by this. */
  readonly id: string;
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
  /** The first of what `--repair` undid in this run, as sentences. */
  readonly repaired: readonly string[];
}

/** Findings where there were none, others than before, none any more, or the same as before but for what the run itself undid. */
export type NoticeEvent = "found" | "changed" | "resolved" | "repaired";

/** What a run of drift ended with. */
export interface NotedRun {
  readonly found: FoundDrift;
  /** Where there are policy tests beside the program, and they were run. */
  readonly tests?: TestedNamespace | undefined;
  /** What was found before it was repaired. */
  readonly repaired?: DriftReport | undefined;
}

/** Most findings that a message names, and the longest of them, in characters. */
const [FINDINGS_MAX, FINDING_MAX] = [20, 500];

/**
 * What to tell of a run; undefined where it found the same as the one that was last told.
 * @param last the {@link DriftNotice.id} that was last told; undefined where nothing was
 * @param style how names are written
 */
export function driftNotice(
  run: NotedRun,
  last: string | undefined,
  style: ReportStyle = PLAIN_STYLE,
): DriftNotice | undefined {
  const { tests, repaired } = run;
  const { report } = run.found;
  const id = idOf(run);
  const before = last ?? NOTHING;
  const undone = repaired ? sentencesOf(repaired, style) : [];
  if (id === before && undone.length === 0) return undefined;
  const findings = [...sentencesOf(report, style), ...testSentences(tests, style)];
  const { project, stack, service } = report;
  return {
    version: 1,
    id,
    at: new Date().toISOString(),
    event: eventOf(id, before),
    ...{ project, stack },
    ...(service !== undefined && { service }),
    summary: summaryOf(report, tests),
    findings: findings.slice(0, FINDINGS_MAX).map(shortened),
    more: Math.max(0, findings.length - FINDINGS_MAX),
    repaired: undone.slice(0, FINDINGS_MAX).map(shortened),
  };
}

/** The same as {@link driftNotice}, as an incoming webhook of Slack takes it, and of others that understand Slack's form. */
export function slackMessage(run: NotedRun, last: string | undefined): { readonly text: string } | undefined {
  const notice = driftNotice(run, last, SLACK_STYLE);
  if (!notice) return undefined;
  const { event, project, stack, service, summary, findings, more, repaired } = notice;
  const lines = [
    `*${TITLES[event]}: ${slackName(`${project}/${stack}`)}*`,
    `${slackText(summary)}${service === undefined ? "" : ` (${slackText(service)})`}`,
    ...findings.map((sentence) => `• ${sentence}`),
    ...(more > 0 ? [`… and ${more} more`] : []),
    ...(repaired.length > 0 ? ["Undone by this run:", ...repaired.map((sentence) => `• ${sentence}`)] : []),
  ];
  return { text: lines.join("\n") };
}

/** What was last told, kept in a file between runs. */
export class LastNotice {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  /**
   * The id of the notice that was last told; undefined where none was.
   * @throws EngineError (`project`) where the file cannot be read or understood
   */
  async read(): Promise<string | undefined> {
    try {
      const { id } = JSON.parse(await readFile(this.#file, "utf8")) as Partial<DriftNotice>;
      if (typeof id === "string") return id;
      throw new Error("it has no id");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      const why = `${(error as Error).message}; without the file, all findings are told as new`;
      throw new EngineError("project", `${this.#file} cannot be read: ${why}`, { cause: error });
    }
  }

  /** @throws EngineError (`project`) where the file cannot be written */
  async write(run: NotedRun): Promise<void> {
    const kept = { id: idOf(run), at: new Date().toISOString() };
    try {
      await writeFile(this.#file, `${JSON.stringify(kept)}\n`);
    } catch (cause) {
      throw new EngineError("project", `${this.#file} cannot be written: ${(cause as Error).message}`, {
        cause,
      });
    }
  }
}

const TITLES: Readonly<Record<NoticeEvent, string>> = {
  found: "Drift",
  changed: "Drift, other than before",
  resolved: "No drift any more",
  repaired: "Drift repaired",
};

function eventOf(id: string, before: string): NoticeEvent {
  // Nobody would be told of the same again but for what was undone meanwhile.
  if (id === before) return "repaired";
  if (id === NOTHING) return "resolved";
  return before === NOTHING ? "found" : "changed";
}

/**
 * A digest of what was found: which objects, and how they are, but not what follows from them, which changes with every
 * device that comes.
 */
function idOf({ found: { report, unmanaged }, tests }: NotedRun): string {
  const open = report.unmanagedCounts === "fail" ? unmanaged : [];
  const found = [
    ...report.drifted.map((step) => ["drifted", step.urn, step.op, changedFields(step)]),
    ...open.map((object) => ["unmanaged", object.definition.name, object.id, declaredState(object)]),
    ...failing(tests).map(({ name, file }) => ["policy test", file, name]),
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

function summaryOf(report: DriftReport, tests: TestedNamespace | undefined): string {
  const failed = failing(tests).length;
  return `${summaryText(report)}${failed > 0 ? ` ${counted(failed, "policy test")} fail.` : ""}`;
}

const PLAIN_STYLE: ReportStyle = { ...PLAIN, change: (_change, sentence) => sentence, test: () => [] };

function sentencesOf(report: DriftReport, style: ReportStyle): string[] {
  const open = report.unmanagedCounts === "fail" ? openObjects(report) : [];
  return [
    ...report.drifted.map((one) => driftedSentence(one, style)),
    ...open.map((one) => foundSentence(one, style)),
  ];
}

const testSentences = (tests: TestedNamespace | undefined, style: ReportStyle): string[] =>
  failing(tests).map(({ name }) => `the policy test ${style.name(name)} fails`);

const shortened = (sentence: string): string =>
  sentence.length > FINDING_MAX ? `${sentence.slice(0, FINDING_MAX).toWellFormed()}…` : sentence;

/** Nothing in it is a link, or calls somebody: neither for Slack nor for those that take its form. */
const slackText = (text: string): string =>
  printable(text)
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll(/(?<![\w.+-])@/g, "@ ");

const slackName = (name: string): string => `\`${slackText(name).replaceAll("`", "'")}\``;

const SLACK_STYLE: ReportStyle = { ...PLAIN_STYLE, name: slackName, text: slackText };
