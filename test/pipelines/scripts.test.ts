import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type CommandResult, environmentWithout, runCommand } from "../support/command.ts";
import { testFolder } from "../support/folder.ts";
import { PIPELINES } from "./support/action.ts";
import { GITHUB_TOKEN, REPOSITORY, startGithub, type TestGithub } from "./support/github.ts";
import { GITLAB_TOKEN, startGitlab, type TestGitlab } from "./support/gitlab.ts";

const COMMENT = "<!-- gatehouse review fleet/prod -->\n## Access review\n";

function fileWith(text: string, name = "comment.md"): string {
  const folder = testFolder();
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), text);
  return join(folder, name);
}

describe("github.mjs", () => {
  let github: TestGithub;
  beforeAll(async () => {
    github = await startGithub();
  });
  beforeEach(() => {
    github.failing = undefined;
    github.permissions = { "pull-requests": "write", issues: "write", actions: "read" };
    for (const list of [github.comments, github.issues, github.requests, github.refusals]) list.length = 0;
  });
  afterEach(() => expect(github.faults).toEqual([]));
  afterAll(() => github.stop());

  const run = (args: readonly string[], env: Record<string, string> = {}): Promise<CommandResult> =>
    runCommand([join(PIPELINES, "github/actions/gatehouse/github.mjs"), ...args], {
      env: {
        ...environmentWithout("GITHUB_"),
        GITHUB_API_URL: github.url,
        GITHUB_REPOSITORY: REPOSITORY,
        GITHUB_TOKEN,
        GITHUB_RUN_ID: "5",
        GITHUB_SERVER_URL: "https://github.example.org",
        AUTHOR: "github-actions[bot]",
        GITHUB_EVENT_PATH: fileWith(
          '{ "pull_request": { "number": 7, "head": { "sha": "abc" } } }',
          "event.json",
        ),
        ...env,
      },
    });

  it("waits for the time in Retry-After after a rate limit, and repeats the request", async () => {
    github.refusals.push({ status: 429, headers: { "retry-after": "0" } });
    github.refusals.push({ status: 403, headers: { "retry-after": "0" } });
    expect(await run(["comment", fileWith(COMMENT)])).toMatchObject({ code: 0, stderr: "" });
    expect(github.comments).toHaveLength(1);
    expect(github.requests).toHaveLength(4);
  });

  it("does not repeat a failed creation of an issue, which may have taken effect", async () => {
    github.failing = "POST";
    expect(await run(["issue", fileWith("## Drift"), "prod", "2"])).toMatchObject({ code: 1 });
    expect(github.requests.map((line) => line.split(" ", 1)[0])).toEqual(["GET", "POST"]);
  });

  it("does not update an issue if only the first-seen time of a finding differs", async () => {
    const report = (time: string) =>
      fileWith(`## Drift\n\n- PublicKey ana was deleted; first seen ${time} UTC\n`);
    const night = (time: string) => run(["issue", report(time), "prod", "2"]);
    expect(await night("2026-11-24 03:17")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Opened/),
    });
    expect(await night("2026-11-25 03:17")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^The drift is unchanged/),
    });
    expect(github.issues).toHaveLength(1);
  });

  it("reports the missing permission, and never the token", async () => {
    github.permissions = {};
    for (const [args, needs] of [
      [["comment", fileWith(COMMENT)], "pull-requests: write"],
      [["issue", fileWith("## Drift"), "prod", "2"], "issues: write"],
      [["find-review"], "contents: read, pull-requests: read and actions: read"],
    ] as const) {
      const { code, stdout, stderr } = await run(args, {
        GITHUB_EVENT_NAME: "push",
        GITHUB_SHA: "abc",
        GITHUB_WORKFLOW_REF: `${REPOSITORY}/.github/workflows/access.yml@refs/heads/main`,
      });
      expect([code, stderr]).toEqual([
        1,
        expect.stringContaining(`403; the job needs the permissions ${needs}`),
      ]);
      expect(stdout + stderr).not.toContain(GITHUB_TOKEN);
    }
    const { code, stderr } = await run(["comment", fileWith(COMMENT)], { GITHUB_TOKEN: "wrong-token" });
    expect([code, stderr]).toEqual([1, expect.stringContaining("401")]);
    expect(stderr).not.toContain("wrong-token");
  });

  it("opens one issue for each program, and closes only the issue of the own program", {
    tags: ["long"],
  }, async () => {
    const night = (program: string, code: string) => run(["issue", fileWith("## Drift"), program, code]);
    expect(await night("policy/prod", "2")).toMatchObject({ code: 0 });
    expect(await night("lab/prod", "0")).toMatchObject({ code: 0, stdout: "No drift and no open issue.\n" });
    expect(await night("lab/prod", "2")).toMatchObject({ code: 0 });
    expect(await night("policy/prod", "0")).toMatchObject({ code: 0 });
    expect(github.issues.map(({ title, state }) => [title, state])).toEqual([
      ["Drift of the access policy of policy/prod", "closed"],
      ["Drift of the access policy of lab/prod", "open"],
    ]);
  });
});

describe("gitlab.mjs", () => {
  let gitlab: TestGitlab;
  beforeAll(async () => {
    gitlab = await startGitlab();
  });
  afterAll(() => gitlab.stop());

  const note = (env: Record<string, string> = {}) =>
    runCommand([join(PIPELINES, "gitlab", "gitlab.mjs"), "note", fileWith(COMMENT)], {
      env: {
        ...environmentWithout("GITLAB_", "CI_"),
        CI_API_V4_URL: `${gitlab.url}/api/v4`,
        CI_MERGE_REQUEST_IID: "7",
        CI_MERGE_REQUEST_PROJECT_ID: "42",
        CI_COMMIT_SHA: "abc",
        CI_JOB_URL: "https://gitlab.example.org/j/1",
        GITLAB_TOKEN,
        ...env,
      },
    });

  it("repeats idempotent requests, and reports the scope that the token requires", {
    tags: ["long"],
  }, async () => {
    gitlab.refusals.push(503, 429);
    expect(await note()).toMatchObject({ code: 0, stdout: "Created the note on !7\n", stderr: "" });
    expect(await note()).toMatchObject({ code: 0, stdout: "Updated the note on !7\n" });
    expect(gitlab.notes).toEqual([
      expect.objectContaining({ body: expect.stringContaining("_Review of commit abc by ") }),
    ]);
    expect(await note({ CI_MERGE_REQUEST_SOURCE_BRANCH_SHA: "def" })).toMatchObject({ code: 0 });
    expect(gitlab.notes).toEqual([
      expect.objectContaining({ body: expect.stringContaining("_Review of commit def by ") }),
    ]);
    gitlab.refusals.push(403);
    const rejected = await note();
    expect([rejected.code, rejected.stderr]).toEqual([1, expect.stringContaining("needs the scope api")]);
    const missing = await note({ GITLAB_TOKEN: "" });
    expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining("GITLAB_TOKEN is missing")]);
    expect(rejected.stderr + missing.stderr).not.toContain(GITLAB_TOKEN);
  });
});

it("the scripts import only modules of Node.js", () => {
  for (const script of ["github/actions/gatehouse/github.mjs", "gitlab/gitlab.mjs"]) {
    const text = readFileSync(join(PIPELINES, script), "utf8");
    const imports = [...text.matchAll(/from "([^"]+)"/g)].map(([, name]) => name);
    expect(imports.length).toBeGreaterThan(0);
    expect(imports.filter((name) => !name?.startsWith("node:"))).toEqual([]);
  }
});
