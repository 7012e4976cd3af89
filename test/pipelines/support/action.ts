import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "vitest";
import { parse } from "yaml";
import { environmentWithout } from "../../support/command.ts";
import { type Contexts, expand, isMet } from "./expressions.ts";

/** The folder of the examples. */
export const PIPELINES = join(import.meta.dirname, "..", "..", "..", "examples", "pipelines");

const ACTION = join(PIPELINES, "github", "actions", "gatehouse");

interface Step {
  readonly name: string;
  readonly id?: string;
  readonly if?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly uses?: string;
  readonly with?: Readonly<Record<string, string>>;
  readonly run?: string;
  readonly "working-directory"?: string;
}

interface Action {
  readonly inputs: Readonly<Record<string, { readonly default?: string }>>;
  readonly runs: { readonly steps: readonly Step[] };
}

/** A workflow job that uses the composite action. */
interface Job {
  readonly inputs: Readonly<Record<string, string>>;
  /** The variables that the workflow's `env` sets, and the variables that GitHub sets for every step. */
  readonly env: Readonly<Record<string, string>>;
  readonly workspace: string;
  readonly event: string;
  readonly payload?: object;
  readonly runId: number;
  readonly sha: string;
  readonly token: string;
}

/** The result of a job. */
export interface JobRun {
  readonly code: number;
  /** The output of the steps. */
  readonly log: string;
  /** The names of the steps that ran. */
  readonly steps: readonly string[];
  readonly summary: string;
}

/** Expects the exit code of a job, and a text in its log. A failure shows the log. */
export function expectEnd(
  { code, log }: Pick<JobRun, "code" | "log">,
  expected: number,
  text: string | RegExp = "",
): void {
  const content = typeof text === "string" ? expect.stringContaining(text) : expect.stringMatching(text);
  expect([code, log]).toEqual([expected, content]);
}

/** The folder with the artifacts of `actions/upload-artifact` and `actions/download-artifact`. */
type Artifacts = string;

/**
 * Runs the steps of the composite action like a GitHub runner, with bash and with GitHub's own evaluator of
 * expressions.
 */
export async function runAction(job: Job, artifacts: Artifacts): Promise<JobRun> {
  const { inputs: defined, runs } = parse(readFileSync(join(ACTION, "action.yml"), "utf8")) as Action;
  const temp = mkdtempSync(join(artifacts, "runner-"));
  const file = (name: string) => {
    const path = join(temp, name);
    writeFileSync(path, "");
    return path;
  };
  const summary = file("summary");
  const github = {
    event_name: job.event,
    event: job.payload ?? {},
    token: job.token,
    sha: job.sha,
  };
  const given = Object.entries(defined).map(([name, { default: value = "" }]) => [
    name,
    job.inputs[name] ?? expand(value, { github }),
  ]);
  const done: Record<string, { outputs: Record<string, string> }> = {};
  const ran: string[] = [];
  let [code, log] = [0, ""];
  for (const [index, step] of runs.steps.entries()) {
    const contexts: Contexts = { github, runner: { temp }, steps: done, inputs: Object.fromEntries(given) };
    if (!isMet(step.if, contexts, { failed: code !== 0 })) continue;
    ran.push(step.name);
    const outputs = file(`outputs-${index}`);
    if (step.uses !== undefined) {
      exchange(step.uses, step.with ?? {}, contexts, artifacts, job.runId);
      continue;
    }
    const env = Object.entries(step.env ?? {}).map(([name, value]) => [name, expand(value, contexts)]);
    const event = file("event.json");
    writeFileSync(event, JSON.stringify(job.payload ?? {}));
    const ended = await bash(
      step.run ?? "",
      join(job.workspace, expand(step["working-directory"] ?? ".", contexts)),
      {
        ...environmentWithout("GATEHOUSE_", "PULUMI_", "GITHUB_", "TF_"),
        GITHUB_OUTPUT: outputs,
        GITHUB_STEP_SUMMARY: summary,
        GITHUB_EVENT_PATH: event,
        GITHUB_ACTION_PATH: ACTION,
        GITHUB_EVENT_NAME: job.event,
        GITHUB_SHA: job.sha,
        GITHUB_RUN_ID: String(job.runId),
        GITHUB_SERVER_URL: "https://github.example.org",
        CI: "true",
        ...job.env,
        ...Object.fromEntries(env),
      },
    );
    log += ended.log;
    code = ended.code;
    if (step.id !== undefined) {
      const lines = readFileSync(outputs, "utf8").split("\n").filter(Boolean);
      done[step.id] = { outputs: Object.fromEntries(lines.map((line) => line.split("=", 2))) };
    }
  }
  const text = readFileSync(summary, "utf8");
  rmSync(temp, { recursive: true });
  return { code, log, steps: ran, summary: text };
}

/** Simulates the two GitHub actions that upload and download artifacts. */
function exchange(
  uses: string,
  given: Readonly<Record<string, string>>,
  contexts: Contexts,
  artifacts: Artifacts,
  runId: number,
): void {
  const value = (name: string) => expand(String(given[name] ?? ""), contexts);
  const place = (run: string | number) => join(artifacts, `run-${run}`, value("name"));
  if (uses.startsWith("actions/upload-artifact@")) {
    const path = value("path");
    if (!existsSync(path)) throw new Error(`there is no ${path} to keep`);
    mkdirSync(place(runId), { recursive: true });
    // If an artifact has a single file, GitHub stores the file without the path of its folder.
    cpSync(path, join(place(runId), path.slice(dirname(path).length + 1)));
  } else if (uses.startsWith("actions/download-artifact@")) {
    if (value("github-token") === "") throw new Error("artifacts of another run take a token");
    cpSync(place(value("run-id")), value("path"), { recursive: true });
  } else throw new Error(`no replacement for ${uses}`);
}

/** Runs a script with bash and the options that GitHub (`shell: bash`) and GitLab use. */
export function bash(
  script: string,
  cwd: string,
  env: Readonly<Record<string, string>>,
): Promise<{ code: number; log: string }> {
  const flags = ["--noprofile", "--norc", "-eo", "pipefail", "-c", script];
  return new Promise((resolve, reject) => {
    const child = execFile("bash", flags, { cwd, env, maxBuffer: 1 << 26 }, (_, stdout, stderr) => {
      if (child.exitCode === null) reject(new Error(`bash did not end by itself:\n${stderr}`));
      else resolve({ code: child.exitCode, log: stdout + stderr });
    });
  });
}
