import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { promisify } from "node:util";
import { expect } from "vitest";
import { parse } from "yaml";
import { environmentWithout } from "../../support/command.ts";
import { testFolder } from "../../support/folder.ts";
import { TestRepository } from "../../support/git.ts";
import { type Listening, listening } from "../../support/listening.ts";
import { bash, PIPELINES } from "./action.ts";

const RUNNER = createRequire(import.meta.url).resolve("gitlab-ci-local");

/** The text of the example pipelines: for a Pulumi program, for Terraform, and for the rotation of API keys. */
export const GITLAB_CI = {
  pulumi: readFileSync(join(PIPELINES, "gitlab", ".gitlab-ci.yml"), "utf8"),
  terraform: readFileSync(join(PIPELINES, "gitlab", "terraform", ".gitlab-ci.yml"), "utf8"),
  keys: readFileSync(join(PIPELINES, "gitlab", "keys", ".gitlab-ci.yml"), "utf8"),
};

/** A pipeline job, with the keys that it inherits through `extends`. */
interface GitlabJob {
  readonly name: string;
  readonly script: readonly string[];
  readonly before_script: readonly string[];
  readonly after_script?: readonly string[];
  readonly variables: Readonly<Record<string, string>>;
  readonly environment?: string;
  readonly id_tokens?: Readonly<Record<string, { readonly aud: string }>>;
  readonly artifacts: { readonly paths: readonly string[]; readonly reports?: { readonly junit: string } };
}

/**
 * Returns the output of gitlab-ci-local for a pipeline with these variables. By default, the pipeline is for the
 * default branch.
 */
async function pipeline(
  flag: "--list-json" | "--preview",
  variables: Readonly<Record<string, string>>,
  text: string,
): Promise<string> {
  const repository = new TestRepository(testFolder());
  repository.write({ ".gitlab-ci.yml": text });
  repository.commit("the pipeline");
  repository.git("remote", "add", "origin", "git@gitlab.example.org:team/access.git");
  const set = Object.entries({ CI_COMMIT_BRANCH: "main", CI_DEFAULT_BRANCH: "main", ...variables });
  const flags = set.flatMap(([name, value]) => ["--variable", `${name}=${value}`]);
  const ignored = set.map(([name]) => name).join();
  const env = { ...environmentWithout("CI_", "GCL_"), GCL_IGNORE_PREDEFINED_VARS: ignored };
  const options = { env, cwd: repository.root };
  return (await promisify(execFile)(process.execPath, [RUNNER, flag, ...flags], options)).stdout;
}

/**
 * Returns the names of the jobs in a pipeline with these variables. gitlab-ci-local also checks the file against
 * GitLab's schema.
 */
export async function gitlabJobs(
  variables: Readonly<Record<string, string>>,
  text: string,
): Promise<readonly string[]> {
  const listed = JSON.parse(await pipeline("--list-json", variables, text)) as {
    name: string;
    when: string;
  }[];
  return listed.filter(({ when }) => when !== "never").map(({ name }) => name);
}

/** Returns a job, with the variables that the file sets for all jobs. */
export async function gitlabJob(name: string, text: string): Promise<GitlabJob> {
  const whole = parse(await pipeline("--preview", {}, text)) as Record<string, GitlabJob>;
  const job = whole[name];
  if (!job) throw new Error(`the file has no job ${name}`);
  return { ...job, name, variables: whole.variables as unknown as Record<string, string> };
}

/** Runs the jobs of a project, in place of a GitLab runner. */
interface GitlabRunner {
  readonly gitlab: TestGitlab;
  /** The folder of the project. */
  readonly project: string;
  /** Environment variables of all jobs that this runner runs. */
  readonly env: Readonly<Record<string, string>>;
}

/**
 * Runs a job like a GitLab runner: `before_script` and `script` as one script, then `after_script`. Checks that the log
 * of the job contains no secret.
 * @param source the value of CI_PIPELINE_SOURCE
 */
export async function runGitlabJob(
  { gitlab, project, env }: GitlabRunner,
  job: GitlabJob,
  source: string,
  credential: Readonly<Record<string, string>>,
): Promise<{ readonly code: number; readonly log: string }> {
  const predefined = {
    CI_API_V4_URL: `${gitlab.url}/api/v4`,
    CI_MERGE_REQUEST_PROJECT_ID: "42",
    CI_MERGE_REQUEST_IID: "7",
    CI_COMMIT_SHA: "4de97a1",
    CI_JOB_URL: "https://gitlab.example.org/j/1",
    CI_JOB_TOKEN: "job-token",
    CI_PIPELINE_SOURCE: source,
    GITLAB_TOKEN,
  };
  const all = {
    ...environmentWithout("GATEHOUSE_", "PULUMI_", "TF_", "GITLAB_", "CI_"),
    ...job.variables,
    ...predefined,
    ...env,
    ...credential,
  };
  const run = await bash([...job.before_script, ...job.script].join("\n"), project, all);
  await bash((job.after_script ?? []).join("\n"), project, all);
  const { GATEHOUSE_USERNAME: _, GATEHOUSE_OIDC: __, GATEHOUSE_TENANT: ___, ...secrets } = credential;
  for (const secret of [GITLAB_TOKEN, ...Object.values(secrets)]) expect(run.log).not.toContain(secret);
  return run;
}

/**
 * Creates a folder for the PATH. It contains a fake `npm` that only prints its arguments, so that jobs install no
 * packages.
 */
export function npmStub(root: string): string {
  const bin = join(root, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "npm"), '#!/bin/sh\necho "npm $*"\n', { mode: 0o755 });
  return bin;
}

/**
 * Returns the tokens of a job, which GitLab creates for `id_tokens`.
 * @param mint creates a token for an audience, with the claims of the job
 * @param variables the variables that the audiences can contain
 */
export async function idTokensOf(
  { id_tokens: wanted = {} }: GitlabJob,
  mint: (aud: string) => Promise<string>,
  variables: Readonly<Record<string, string>>,
): Promise<Readonly<Record<string, string>>> {
  const tokens = Object.entries(wanted).map(async ([name, { aud }]) => {
    const audience = aud.replace(/^\$(\w+)$/, (_, variable: string) => variables[variable] ?? "");
    return [name, await mint(audience)] as const;
  });
  return Object.fromEntries(await Promise.all(tokens));
}

/** The token that the fake GitLab API accepts. */
export const GITLAB_TOKEN = "glpat-stand-in-0123456789";

/** A fake GitLab API with one merge request, whose notes it returns in pages. */
export interface TestGitlab extends Listening {
  readonly notes: { id: number; author: string; body: string }[];
  /** The statuses of the error responses to the next requests, in order. */
  readonly refusals: number[];
}

/**
 * Starts a fake GitLab API. It implements the part of the notes API (docs.gitlab.com/api/notes) that the scripts use.
 */
export async function startGitlab(): Promise<TestGitlab> {
  const notes: TestGitlab["notes"] = [];
  const refusals: number[] = [];
  const shown = ({ id, author, body }: TestGitlab["notes"][number]) => ({
    id,
    body,
    author: { id: author.length, username: author },
    system: false,
    notable_type: "MergeRequest",
    notable_iid: 7,
  });
  const NOTES = "/api/v4/projects/42/merge_requests/7/notes";
  const respond = async (request: IncomingMessage): Promise<[number, unknown, Record<string, string>?]> => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://stand-in");
    const refusal = refusals.shift();
    if (refusal !== undefined) return [refusal, { message: "refused" }, { "retry-after": "0" }];
    if (request.headers["private-token"] !== GITLAB_TOKEN) return [401, { message: "401 Unauthorized" }];
    if (request.method === "GET" && pathname === "/api/v4/user") return [200, { id: "pipeline".length }];
    if (request.method === "GET" && pathname === NOTES) {
      const [size, page] = [Number(searchParams.get("per_page")), Number(searchParams.get("page"))];
      const next = notes.length > size * page ? String(page + 1) : "";
      return [200, notes.slice((page - 1) * size, page * size).map(shown), { "x-next-page": next }];
    }
    const { body } = (await json(request)) as { body?: string };
    if (typeof body !== "string") return [400, { error: "body is missing" }];
    if (request.method === "POST" && pathname === NOTES) {
      const note = { id: 1000 + notes.length, author: "pipeline", body };
      notes.push(note);
      return [201, shown(note)];
    }
    const note = notes.find(({ id }) => request.method === "PUT" && pathname === `${NOTES}/${id}`);
    return note ? [200, shown(Object.assign(note, { body }))] : [404, { message: "404 Not found" }];
  };
  const server = createServer((request, response) => {
    respond(request).then(
      ([status, body, headers]) => response.writeHead(status, headers).end(JSON.stringify(body)),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  return Object.assign({ notes, refusals }, await listening(server));
}
