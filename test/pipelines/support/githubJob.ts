import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { parse } from "yaml";
import type { TestRepository } from "../../support/git.ts";
import type { TestIssuer } from "../../support/issuer.ts";
import { type JobRun, runAction } from "./action.ts";
import { expand } from "./expressions.ts";
import { GITHUB_TOKEN, REPOSITORY, type TestGithub } from "./github.ts";

export type JobName = "review" | "apply" | "drift";

interface WorkflowStep {
  readonly uses?: string;
  readonly with?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
}

interface Workflow {
  readonly env: Readonly<Record<string, string>>;
  readonly jobs: Readonly<
    Record<
      JobName,
      {
        readonly environment?: string;
        readonly permissions: Readonly<Record<string, string>>;
        readonly steps: readonly WorkflowStep[];
      }
    >
  >;
}

/** A repository with a workflow that uses the action, on a fake GitHub. */
interface ProjectOptions {
  readonly repository: TestRepository;
  readonly github: TestGithub;
  readonly issuer: TestIssuer;
  /** The name of the file in `.github/workflows`. */
  readonly workflow: string;
  /** The secrets that the settings of the repository contain. */
  readonly secrets: Readonly<Record<string, string>>;
  /** Replaces values of `env` of the workflow. */
  readonly env?: Readonly<Record<string, string>>;
}

/** An event that starts a job. */
export interface GithubEvent {
  readonly event: string;
  readonly payload?: object;
  /** The commit. @default the current commit of the repository */
  readonly sha?: string;
  /** Claims of the tokens of the job that are replaced. */
  readonly claims?: Readonly<Record<string, string>>;
  /** Variables of the job, instead of those of the workflow. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs the jobs of a repository's workflow, in place of GitHub. */
export class GithubProject {
  /** The number of the next run. A job uses the artifacts of earlier jobs with the same number. */
  nextRun = 1000;
  readonly #options: ProjectOptions;

  constructor(options: ProjectOptions) {
    this.#options = options;
  }

  /**
   * Runs the action in a job, with the variables, secrets and permissions that the workflow declares. The embedded engine
   * replaces the Pulumi CLI. A job with the permission `id-token: write` can request tokens. Checks that the log contains
   * no secret.
   */
  async job(
    name: JobName,
    { event, payload, sha, claims, env: replaced }: GithubEvent,
  ): Promise<JobRun & { readonly id: number }> {
    const { repository, github, issuer, workflow: file, secrets, env: settings } = this.#options;
    const id = this.nextRun++;
    const path = join(repository.root, ".github", "workflows", file);
    const workflow = parse(readFileSync(path, "utf8")) as Workflow;
    const { environment, permissions, steps } = workflow.jobs[name];
    const step = steps.find(({ uses }) => uses?.endsWith("/actions/gatehouse"));
    const contexts = { env: workflow.env, secrets };
    const expanded = (values: Readonly<Record<string, string>> = {}) =>
      Object.fromEntries(
        Object.entries(values).map(([key, value]) => [key, expand(String(value), contexts)]),
      );
    const ref = event === "pull_request" ? "refs/pull/7/merge" : "refs/heads/main";
    github.permissions = permissions;
    const run = await runAction(
      {
        inputs: { ...expanded(step?.with), engine: "embedded" },
        env: {
          GITHUB_API_URL: github.url,
          GITHUB_REPOSITORY: REPOSITORY,
          GATEHOUSE_AGAIN_S: "0 0",
          GITHUB_WORKFLOW_REF: `${REPOSITORY}/.github/workflows/${file}@refs/heads/main`,
          NODE_EXTRA_CA_CERTS: issuer.caFile,
          ...expanded(workflow.env),
          ...expanded(step?.env),
          ...settings,
          ...(permissions["id-token"] === "write" &&
            issuer.githubJob({ repository: REPOSITORY, event_name: event, ref, environment, ...claims })),
          ...replaced,
        },
        workspace: repository.root,
        runId: id,
        token: GITHUB_TOKEN,
        sha: sha ?? repository.git("rev-parse", "HEAD"),
        event,
        ...(payload && { payload }),
      },
      join(repository.root, "artifacts"),
    );
    for (const secret of [GITHUB_TOKEN, ...Object.values(secrets)]) {
      expect(run.log + run.summary).not.toContain(secret);
    }
    return { ...run, id };
  }

  /** Pushes the current commit to a pull request, and runs the job `review`. */
  async pushed(number: number, env: Readonly<Record<string, string>> = {}) {
    const { repository, github } = this.#options;
    const head = repository.git("rev-parse", "HEAD");
    const pull = github.pulls.find((one) => one.number === number);
    if (pull) pull.head = head;
    else github.pulls.push({ number, head });
    const payload = { pull_request: { number, head: { sha: head } } };
    const run = await this.job("review", { event: "pull_request", payload, env });
    github.runs.push({ id: run.id, head, conclusion: run.code === 0 ? "success" : "failure" });
    return run;
  }

  /** Merges a pull request as one commit, and runs the job `apply`. */
  async merged(number: number, env: Readonly<Record<string, string>> = {}) {
    const { repository, github } = this.#options;
    const sha = repository.commit(`merge of #${number}`);
    const pull = github.pulls.find((one) => one.number === number);
    if (pull) pull.merged = sha;
    return this.job("apply", { event: "push", sha, env });
  }
}
