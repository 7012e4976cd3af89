// `npm run test:clients` runs operations of SSH clients against a plain sshd, and through the gateway against agents.
// It prints a Markdown table "client × operation × target". The exit code is 1 if an operation that works with sshd
// fails through the gateway.
import { randomBytes } from "node:crypto";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { newKey, openFolder, withoutSsh } from "../../support/sshFleet.ts";
import { type Check, type Outcome, runCheck } from "./check.ts";
import { fileChecks } from "./files.ts";
import { otherChecks } from "./otherClients.ts";
import { sshChecks } from "./ssh.ts";
import { type FailedTarget, type Keys, type Target, Targets } from "./targets.ts";

/** The variants of the project's agent that the checks run against: the name of each variant, and its flags. */
const AGENTS: Readonly<Record<string, readonly string[]>> = {
  "gatehouse-agent": [],
  "gatehouse-agent-internal": ["--sftp-server", "internal"],
};
const HELP = `Usage: npm run test:clients [-- options]

  --target NAME   run only this target: sshd, ${Object.keys(AGENTS).join(", ")}, foreign-1, …; repeatable
  --only TEXT     run only checks whose "client: operation" contains the text; repeatable
  --agent PATH    add a target: the program of a foreign agent (version 0.19 or 0.27), run as root; repeatable

Set PYTHON to a Python that has the modules paramiko and asyncssh. Ansible may be beside it.`;

/** Size of the file that checks transfer, in bytes. */
const BIG = 30_000_000;

function readOptions() {
  const several = { type: "string", multiple: true, default: [] as string[] } as const;
  try {
    const { values } = parseArgs({ options: { target: several, only: several, agent: several } });
    const targets = [
      "sshd",
      ...Object.keys(AGENTS),
      ...values.agent.map((_, index) => `foreign-${index + 1}`),
    ];
    const unknown = values.target.filter((name) => !targets.includes(name));
    if (unknown.length > 0) {
      throw new Error(`Unknown target: ${unknown.join(", ")}. Allowed: ${targets.join(", ")}.`);
    }
    const checks = [...sshChecks, ...fileChecks, ...otherChecks].filter(
      ({ client, operation }) =>
        values.only.length === 0 || values.only.some((text) => `${client}: ${operation}`.includes(text)),
    );
    if (checks.length === 0) throw new Error("--only matches no check.");
    return { ...values, checks };
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${HELP}`);
    process.exit(2);
  }
}

/** A column of the table: the outcomes of the checks at one target. */
interface Column {
  readonly name: string;
  readonly isSshd: boolean;
  /** Set if the target could not be started. There are no outcomes in this case. */
  readonly failed?: FailedTarget;
  readonly outcomes: ReadonlyMap<Check, Outcome>;
}

type Files = { readonly folder: string; readonly big: string };

/** Runs all checks at a target, one after another. */
async function runColumn(target: Target, checks: readonly Check[], files: Files): Promise<Column> {
  const { name, isSshd } = target;
  const outcomes = new Map<Check, Outcome>();
  for (const check of checks) {
    const outcome = await runCheck(check, target, files);
    outcomes.set(check, outcome);
    const shown = outcome.kind === "passed" ? `${outcome.seconds.toFixed(1)} s` : oneLine(outcome.reason);
    console.error(`${name}: ${check.client}: ${check.operation}: ${outcome.kind}, ${shown}`);
  }
  await target.stop();
  return { name, isSshd, outcomes };
}

const cell = (outcome: Outcome | undefined): string => {
  if (outcome === undefined || outcome.kind === "skipped") return "–";
  return outcome.kind === "passed" ? `${outcome.seconds.toFixed(1)} s` : "**fails**";
};

const oneLine = (text: string): string => text.trim().replaceAll(/\s+/g, " ");

function printTable(checks: readonly Check[], columns: readonly Column[]): void {
  console.log(`| client | operation | ${columns.map(({ name }) => name).join(" | ")} |`);
  console.log(`|---|---|${columns.map(() => "---:|").join("")}`);
  for (const check of checks) {
    const cells = columns.map(({ outcomes }) => cell(outcomes.get(check)));
    console.log(`| ${[check.client, check.operation, ...cells].join(" | ")} |`);
  }
}

/** Prints the failed or the skipped checks with their reasons. Prints equal reasons at one target once. */
function printReasons(title: string, kind: "failed" | "skipped", columns: readonly Column[]): void {
  const lines = new Map<string, string[]>();
  for (const { name, failed, outcomes } of columns) {
    if (failed && (kind === "skipped") === failed.isMissing) lines.set(oneLine(failed.reason), [name]);
    for (const [{ client, operation }, outcome] of outcomes) {
      if (outcome.kind !== kind) continue;
      const reason = `${name}: ${oneLine(outcome.reason)}`;
      lines.set(reason, [...(lines.get(reason) ?? []), `${client}: ${operation}`]);
    }
  }
  if (lines.size === 0) return;
  console.log(`\n${title}\n`);
  for (const [reason, operations] of lines) {
    const [first, ...others] = operations;
    console.log(`- ${first}${others.length > 0 ? ` and ${others.length} others` : ""}: ${reason}`);
  }
}

/** Returns true if an operation that works with sshd fails through the gateway, or if an agent could not be started. */
function hasFindings(columns: readonly Column[]): boolean {
  const sshd = columns.find(({ isSshd }) => isSshd);
  const isFinding = ([check, { kind }]: readonly [Check, Outcome]) =>
    kind === "failed" && sshd?.outcomes.get(check)?.kind !== "failed";
  return columns.some(
    ({ isSshd, failed, outcomes }) => !isSshd && (failed !== undefined || [...outcomes].some(isFinding)),
  );
}

async function main(): Promise<number> {
  const { target: names, checks, agent: foreign } = readOptions();
  if (withoutSsh !== undefined) throw new Error(withoutSsh);
  const folder = openFolder();
  chmodSync(folder.path, 0o755);
  const big = join(folder.path, "30-megabytes");
  writeFileSync(big, randomBytes(BIG));
  chmodSync(big, 0o644);
  const keys: Keys = {
    ed25519: newKey(folder.path, "ed25519"),
    rsa: newKey(folder.path, "rsa", "rsa"),
    "ecdsa-521": newKey(folder.path, "ecdsa-521", "ecdsa", 521),
  };
  const targets = new Targets(folder.path, keys);
  const columns: Column[] = [];
  const wanted = (name: string) => names.length === 0 || names.includes(name);
  const run = async (started: Target | FailedTarget) => {
    const { name, isSshd } = started;
    columns.push(
      "reason" in started
        ? { name, isSshd, failed: started, outcomes: new Map() }
        : await runColumn(started, checks, { folder: folder.path, big }),
    );
  };
  try {
    const sshd = await targets.sshd();
    if (wanted(sshd.name)) await run(sshd);
    for (const [name, flags] of Object.entries(AGENTS)) {
      if (wanted(name)) await run(await targets.agent(name, flags));
    }
    for (const [index, path] of foreign.entries()) {
      const name = `foreign-${index + 1}`;
      if (wanted(name)) await run(await targets.foreignAgent(name, path));
    }
  } finally {
    await targets.stop();
    folder.remove();
  }
  printTable(checks, columns);
  printReasons("Failures:", "failed", columns);
  printReasons("Not run:", "skipped", columns);
  return hasFindings(columns) ? 1 : 0;
}

process.exitCode = await main();
