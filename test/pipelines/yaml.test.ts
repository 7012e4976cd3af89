import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { PIPELINES } from "./support/action.ts";
import { isMet } from "./support/expressions.ts";
import { GITLAB_CI, gitlabJobs } from "./support/gitlab.ts";

const textOf = (path: string) => readFileSync(join(PIPELINES, path), "utf8");
const WORKFLOWS = ["access", "access-terraform"].map((name) => `github/workflows/${name}.yml`);
const ALL_WORKFLOWS = [...WORKFLOWS, "github/workflows/rotate-keys.yml"];
const ACTION = "github/actions/gatehouse/action.yml";

type Parser = typeof import("@actions/workflow-parser") &
  typeof import("@actions/workflow-parser/actions/action-parser");

let parser: Parser;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "gatehouse-parser-"));
  const outfile = join(folder, "parser.mjs");
  const contents = `export * from "@actions/workflow-parser";
export * from "@actions/workflow-parser/actions/action-parser";`;
  // GitHub's parser imports its JSON schemas in a way that only bundlers support.
  await build({
    stdin: { contents, resolveDir: import.meta.dirname },
    bundle: true,
    platform: "node",
    format: "esm",
    outfile,
    banner: { js: 'import { createRequire } from "node:module"; const require = createRequire("/");' },
  });
  parser = await import(pathToFileURL(outfile).href);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Returns the errors that GitHub's own parser reports for a workflow. */
async function workflowErrors(content: string): Promise<string[]> {
  const { convertWorkflowTemplate, NoOperationTraceWriter, parseWorkflow } = parser;
  const { context, value } = parseWorkflow({ name: "access.yml", content }, new NoOperationTraceWriter());
  if (value) await convertWorkflowTemplate(context, value);
  return context.errors.getErrors().map(({ message }) => message);
}

const actionErrors = (content: string) =>
  parser
    .parseAction({ name: "action.yml", content }, new parser.NoOperationTraceWriter())
    .context.errors.getErrors()
    .map(({ message }) => message);

describe("GitHub's parser", () => {
  it.each(ALL_WORKFLOWS)("accepts %s", async (path) => {
    expect(await workflowErrors(textOf(path))).toEqual([]);
  });

  it("accepts the action", () => {
    expect(actionErrors(textOf(ACTION))).toEqual([]);
  });

  it("rejects errors in the workflow and the action", async () => {
    const text = textOf("github/workflows/access.yml");
    expect(await workflowErrors(text.replace("issues: write", "issue: write"))).not.toEqual([]);
    expect(await workflowErrors(text.replace("github.ref ==", "githb.ref =="))).not.toEqual([]);
    expect(await workflowErrors(text.replace("needs: review", "needs: reviews"))).not.toEqual([]);
    expect(actionErrors(textOf(ACTION).replace("shell: bash", "shel: bash"))).not.toEqual([]);
  });
});

interface Workflow {
  readonly jobs: Readonly<
    Record<string, { readonly if?: string; readonly steps: readonly Record<string, string>[] }>
  >;
}

describe.each(WORKFLOWS)("%s", (path) => {
  const { jobs } = parse(textOf(path)) as Workflow;
  const pull = (repository: string) => ({ pull_request: { head: { repo: { full_name: repository } } } });
  const main = "refs/heads/main";

  it.each([
    [
      "a pull request",
      { event_name: "pull_request", event: pull("team/access"), ref: "refs/pull/7/merge" },
      ["review"],
    ],
    [
      "a pull request of a fork",
      { event_name: "pull_request", event: pull("eve/access"), ref: "refs/pull/8/merge" },
      [],
    ],
    [
      "a pull request of Dependabot",
      {
        event_name: "pull_request",
        event: pull("team/access"),
        ref: "refs/pull/9/merge",
        actor: "dependabot[bot]",
      },
      [],
    ],
    ["a merge", { event_name: "push", event: {}, ref: main }, ["apply"]],
    ["the schedule", { event_name: "schedule", event: {}, ref: main }, ["drift"]],
    ["a manual start", { event_name: "workflow_dispatch", event: {}, ref: main }, ["review", "apply"]],
    [
      "a manual start on another branch",
      { event_name: "workflow_dispatch", event: {}, ref: "refs/heads/x" },
      ["review"],
    ],
  ])("runs its jobs on %s", (_, event, expected) => {
    const github = { actor: "ana", repository: "team/access", ...event };
    const ran: string[] = [];
    for (const [name, job] of Object.entries(jobs)) {
      const needs = { review: { result: ran.includes("review") ? "success" : "skipped" } };
      if (isMet(job.if, { github, needs }, { failed: false })) ran.push(name);
    }
    expect(ran).toEqual(expected);
  });

  it("a manual start does not run the apply if the review fails", () => {
    const github = {
      event_name: "workflow_dispatch",
      event: {},
      ref: main,
      actor: "ana",
      repository: "team/access",
    };
    const needs = { review: { result: "failure" } };
    expect(isMet(jobs.apply?.if, { github, needs }, { failed: true })).toBe(false);
  });
});

it("scripts contain no expressions, since an expression would insert user input into the script", () => {
  const steps = [
    ...ALL_WORKFLOWS.flatMap((path) =>
      Object.values((parse(textOf(path)) as Workflow).jobs).flatMap((job) => job.steps),
    ),
    ...(parse(textOf(ACTION)) as { runs: { steps: Record<string, string>[] } }).runs.steps,
  ];
  const scripts = steps.flatMap(({ run }) => (run === undefined ? [] : [run]));
  expect(scripts.length).toBeGreaterThan(8);
  expect(scripts.filter((script) => script.includes("${{"))).toEqual([]);
});

it("third-party actions are pinned to a commit", () => {
  const uses = [...ALL_WORKFLOWS, ACTION].flatMap((path) =>
    [...textOf(path).matchAll(/uses: (\S+)/g)].map(([, name]) => name),
  );
  expect(uses.length).toBeGreaterThan(10);
  const unpinned = uses.filter(
    (name) => !/^(\.\/|actions\/[\w-]+@v\d+$|[\w-]+\/[\w-]+@[0-9a-f]{40}$)/.test(name ?? ""),
  );
  expect(unpinned).toEqual([]);
});

const { keys: _, ...ofPolicies } = GITLAB_CI;

describe.each(Object.entries(ofPolicies))(
  "GitLab's schema and rules in gitlab-ci-local, for %s,",
  { tags: ["long"] },
  (_, text) => {
    it.each([
      ["a merge request", { CI_PIPELINE_SOURCE: "merge_request_event", CI_COMMIT_BRANCH: "" }, ["review"]],
      ["a push to the default branch", { CI_PIPELINE_SOURCE: "push" }, ["review", "apply"]],
      ["a push to another branch", { CI_PIPELINE_SOURCE: "push", CI_COMMIT_BRANCH: "change" }, []],
      ["the schedule", { CI_PIPELINE_SOURCE: "schedule" }, ["drift"]],
    ])("accept the file on %s", async (_, variables, expected) => {
      expect(await gitlabJobs(variables, text)).toEqual(expected);
    });

    it("reject errors in the file", async () => {
      const wrong = text.replace("junit: drift.xml", "junitt: drift.xml");
      await expect(gitlabJobs({}, wrong)).rejects.toThrow(/junitt/);
    });
  },
);
