import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { expect } from "vitest";
import { parse, parseDocument } from "yaml";
import { expectEnd } from "../pipelines/support/action.ts";
import { BOT, REPOSITORY, startGithub, type TestGithub } from "../pipelines/support/github.ts";
import { GithubProject } from "../pipelines/support/githubJob.ts";
import {
  GITLAB_TOKEN,
  gitlabJob,
  idTokensOf,
  npmStub,
  runGitlabJob,
  startGitlab,
  type TestGitlab,
} from "../pipelines/support/gitlab.ts";
import { PASSPHRASE } from "../support/gatehouse.ts";
import { gitOnPath, TestRepository } from "../support/git.ts";
import { blocksIn, pageText, ROOT } from "../support/pageCommands.ts";
import { keyData } from "../support/policy.ts";
import { startTrustingFleet, type TrustingFleet } from "../support/trustingFleet.ts";
import { type PageFleet, startPageFleet } from "./PageFleet.ts";
import { type OnEnd, typed, typedPage } from "./PageTest.ts";

const GITHUB_PAGE = "docs/tutorials/github-actions.md";
const GITLAB_PAGE = "docs/tutorials/gitlab.md";

/** A repository with a program, and a platform that runs its pipeline. */
interface PipelineFleet<Platform> extends PageFleet {
  readonly trusting: TrustingFleet;
  readonly repository: TestRepository;
  readonly platform: Platform;
}

/** The program of the repository. The page adds the trusted workloads. */
const PROGRAM = {
  "policy/Pulumi.yaml": "{ name: policy, runtime: nodejs }\n",
  "policy/package.json": '{ "name": "policy", "private": true, "main": "index.ts" }\n',
  "policy/keys/ana.pub": keyData("ana"),
  "policy/index.ts": `import { login, PublicKey, sshKeyFile } from "@gatehouse-access/provider";

new PublicKey("ana", {
  name: "ana",
  data: sshKeyFile("keys/ana.pub"),
  username: login("root"),
  filter: { hostname: "^web-" },
});
`,
  "policy/access.ignore": "Member * until 2999-12-31: declared elsewhere\n",
  ".gitignore": "node_modules\n/artifacts\n/bin\n",
};

/** Starts a service that trusts the issuer of the test, and creates the repository beside a clone of this project. */
async function startPipeline<Platform extends { stop(): Promise<unknown> }>(
  folder: string,
  onEnd: OnEnd,
  startPlatform: () => Promise<Platform>,
): Promise<PipelineFleet<Platform>> {
  const trusting = await startTrustingFleet();
  onEnd(trusting.stop);
  const platform = await startPlatform();
  onEnd(platform.stop);
  const fleet = await startPageFleet(folder, onEnd, { fleet: trusting.fleet, empty: true });
  const { shell } = fleet;
  symlinkSync(ROOT, join(folder, "gatehouse"));
  const root = join(folder, "access");
  for (const path of [root, join(folder, "states")]) mkdirSync(path);
  const repository = new TestRepository(root);
  repository.write({ ...PROGRAM, "artifacts/.keep": "" });
  repository.commit("the policy");
  repository.git("init", "--quiet", "--bare", join(folder, "origin.git"));
  repository.git("remote", "add", "origin", join(folder, "origin.git"));
  repository.git("switch", "--quiet", "--create", "pipeline");
  shell.substitute(/s3:\/\/example-states[^'\s]*/, `file://${join(folder, "states")}`);
  shell.substitute(/acme\/access/, REPOSITORY);
  shell.substitute(/\.\.\.\{ name: "pipeline-/g, `...{ issuer: "${trusting.issuer.url}", name: "pipeline-`);
  await shell.type("cd access");
  return {
    ...fleet,
    trusting,
    repository,
    platform,
  };
}

/** Adds the declarations of the page to the program. */
function addDeclarations(page: string, { repository, shell }: PipelineFleet<unknown>): void {
  const file = join(repository.root, "policy", "index.ts");
  const [declarations = ""] = blocksIn(pageText(page), "ts");
  writeFileSync(file, `${readFileSync(file, "utf8")}\n${shell.substituted(declarations)}`);
}

/**
 * Sets the variables that the page lists in the file of the pipeline.
 * @param key the key of the variables in the file
 */
function setVariables(
  page: string,
  file: string,
  key: string,
  { repository, shell }: PipelineFleet<unknown>,
) {
  const path = join(repository.root, file);
  const document = parseDocument(readFileSync(path, "utf8"));
  const [block = ""] = blocksIn(pageText(page), "yaml");
  for (const [name, value] of Object.entries(parse(shell.substituted(block))[key] as object)) {
    expect(document.hasIn([key, name]), `${file} has the variable ${name}`).toBe(true);
    document.setIn([key, name], value);
  }
  writeFileSync(path, document.toString({ lineWidth: 0 }));
}

/** Returns the secrets that a table of the page lists, with values. */
function storedSecrets(page: string): Record<string, string> {
  const rows = pageText(page).match(/^ *\| `[A-Z_`, ]+/gm) ?? [];
  const names = rows.flatMap((row) => Array.from(row.matchAll(/`([A-Z_]+)`/g), ([, name = ""]) => name));
  const values: Record<string, string> = {
    PULUMI_CONFIG_PASSPHRASE: PASSPHRASE,
    AWS_ACCESS_KEY_ID: "AKIA-of-the-test",
    AWS_SECRET_ACCESS_KEY: "secret-of-the-test",
    GITLAB_TOKEN,
    GATEHOUSE_USERNAME: "ana",
    GATEHOUSE_PASSWORD: "correct-horse",
  };
  return Object.fromEntries(
    names.map((name) => {
      const { [name]: value } = values;
      if (value === undefined) throw new Error(`the test has no value for the secret ${name} of ${page}`);
      return [name, value];
    }),
  );
}

/** Replaces the login names of the key in the program, and commits the change. */
function changeLogins({ repository }: PipelineFleet<unknown>, before: string, after: string): void {
  const file = join(repository.root, "policy", "index.ts");
  writeFileSync(file, readFileSync(file, "utf8").replace(before, after));
  repository.commit(`${after}`);
}

const logins = async ({ client }: PageFleet) =>
  (await client.getPublicKeys({ query: {} })).map(({ username }) => username);

/** The lines that both tutorials have: the settings, the first apply, and the id of the namespace. */
const firstApply = <C extends PipelineFleet<unknown>>(page: string, variables: (context: C) => void) => [
  typed<C>("export GATEHOUSE_URL", { before: (context) => addDeclarations(page, context) }),
  typed<C>("export GATEHOUSE_USERNAME"),
  typed<C>("export PULUMI_BACKEND_URL"),
  typed<C>("gatehouse up policy --stack prod", { adds: "--yes", prints: "3 created" }),
  typed<C>("grep gatehouse:tenant", {
    after(context, { stdout }) {
      const [, id = ""] = /gatehouse:tenant: (\S+)/.exec(stdout) ?? [];
      context.shell.substitute(/(GATEHOUSE_TENANT:) [0-9a-f-]{36}/, `$1 ${id}`);
      variables(context);
    },
  }),
];

export const githubActions = typedPage<PipelineFleet<TestGithub>>({
  path: GITHUB_PAGE,
  skip: gitOnPath ? undefined : "git is not on the PATH",
  start: (folder, onEnd) => startPipeline(folder, onEnd, startGithub),
  lines: [
    typed("mkdir -p .github/workflows"),
    typed("cp -R ../gatehouse/"),
    typed("cp ../gatehouse/"),
    ...firstApply<PipelineFleet<TestGithub>>(GITHUB_PAGE, (context) =>
      setVariables(GITHUB_PAGE, ".github/workflows/access.yml", "env", context),
    ),
    typed("git add .github policy"),
    typed("git commit"),
    typed("git push"),
  ],
  async after(context) {
    const { repository, platform: github, trusting, client } = context;
    const project = new GithubProject({
      repository,
      github,
      issuer: trusting.issuer,
      workflow: "access.yml",
      secrets: storedSecrets(GITHUB_PAGE),
    });
    const run = async (title: string, job: ReturnType<GithubProject["job"]>) => {
      const ended = await job;
      context.shell.record(`--- ${title}\n${ended.log}[exit code ${ended.code}]\n`);
      return ended;
    };
    expectEnd(await run("job review of the first pull request", project.pushed(1)), 0);
    expect(github.comments).toEqual([
      expect.objectContaining({ login: BOT, body: expect.stringMatching(/OK[\s\S]*No access changes/) }),
    ]);
    expectEnd(await run("job apply after the merge", project.merged(1)), 0);

    changeLogins(context, 'login("root")', 'login("root", "deploy")');
    expectEnd(await run("job review of a change", project.pushed(2)), 0);
    expect(github.comments.at(-1)?.body).toContain("gains login `deploy`");
    expectEnd(await run("job apply after the merge of the change", project.merged(2)), 0);
    expect(await logins(context)).toEqual(["^(deploy|root)$"]);

    const night = () => project.job("drift", { event: "schedule" });
    expectEnd(await run("job drift", night()), 0);
    await client.createFirewallRule({ body: { ...RULE, filter: { hostname: ".*" } } });
    expectEnd(await run("job drift after a manual change", night()), 2);
    expect(github.issues).toEqual([expect.objectContaining({ login: BOT, state: "open" })]);
    expect(github.faults).toEqual([]);
  },
});

const RULE = { action: "deny" as const, active: true, priority: 1, sourceIp: ".*", username: "^x$" };

export const gitlab = typedPage<PipelineFleet<TestGitlab>>({
  path: GITLAB_PAGE,
  skip: gitOnPath ? undefined : "git is not on the PATH",
  start: (folder, onEnd) => startPipeline(folder, onEnd, startGitlab),
  lines: [
    typed("cp ../gatehouse/"),
    ...firstApply<PipelineFleet<TestGitlab>>(GITLAB_PAGE, (context) =>
      setVariables(GITLAB_PAGE, ".gitlab-ci.yml", "variables", context),
    ),
    typed("git add .gitlab-ci.yml"),
    typed("git commit"),
    typed("git push"),
  ],
  async after(context) {
    const { repository, platform, trusting, client } = context;
    const file = readFileSync(join(repository.root, ".gitlab-ci.yml"), "utf8");
    const secrets = storedSecrets(GITLAB_PAGE);
    const bin = npmStub(repository.root);
    const run = async (name: string, source: string, ref = "main") => {
      const job = await gitlabJob(name, file);
      const claims = {
        project_path: REPOSITORY,
        pipeline_source: source,
        environment: job.environment,
        ref,
        ref_protected: String(ref === "main"),
      };
      const tokens = await idTokensOf(
        job,
        (aud) => trusting.issuer.gitlab({ ...claims, aud }),
        job.variables,
      );
      const path = [bin, join(ROOT, "node_modules", ".bin"), process.env.PATH].join(delimiter);
      const env = { ENGINE: "embedded", PATH: path, NODE_EXTRA_CA_CERTS: trusting.issuer.caFile };
      const runner = { gitlab: platform, project: repository.root, env };
      const ended = await runGitlabJob(runner, job, source, { ...secrets, ...tokens });
      context.shell.record(`--- job ${name} (${source})\n${ended.log}[exit code ${ended.code}]\n`);
      return ended;
    };
    expectEnd(await run("review", "merge_request_event", "pipeline"), 0);
    expect(platform.notes).toEqual([
      expect.objectContaining({ author: "pipeline", body: expect.stringContaining("No access changes") }),
    ]);
    changeLogins(context, 'login("root")', 'login("root", "deploy")');
    expectEnd(await run("review", "merge_request_event", "deploy"), 0);
    expect(platform.notes).toEqual([
      expect.objectContaining({ body: expect.stringContaining("gains login `deploy`") }),
    ]);
    expectEnd(await run("review", "push"), 0);
    expectEnd(await run("apply", "push"), 0);
    expect(await logins(context)).toEqual(["^(deploy|root)$"]);
    expectEnd(await run("drift", "schedule"), 0);
    await client.createFirewallRule({ body: { ...RULE, filter: { hostname: ".*" } } });
    expectEnd(await run("drift", "schedule"), 2);
  },
});
