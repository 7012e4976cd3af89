import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { environmentWithout } from "../support/command.ts";
import { COMMAND } from "../support/gatehouse.ts";
import { policyEnv } from "../support/policy.ts";
import { PolicyProgram } from "../support/policyProgram.ts";
import { startTrustingFleet, type TrustingFleet } from "../support/trustingFleet.ts";
import { bash, expectEnd, PIPELINES } from "./support/action.ts";
import { expand, isMet } from "./support/expressions.ts";
import { GITLAB_CI, gitlabJob, gitlabJobs, idTokensOf, npmStub } from "./support/gitlab.ts";

interface Workflow {
  readonly env: Readonly<Record<string, string>>;
  readonly jobs: {
    readonly rotate: {
      readonly if: string;
      readonly environment: string;
      readonly permissions: Readonly<Record<string, string>>;
      readonly steps: readonly { name?: string; run?: string; env?: Readonly<Record<string, string>> }[];
    };
  };
}

const workflow = parse(
  readFileSync(join(PIPELINES, "github", "workflows", "rotate-keys.yml"), "utf8"),
) as Workflow;

it("the workflow rotates keys only on the main branch", () => {
  const runs = (ref: string) => isMet(workflow.jobs.rotate.if, { github: { ref } }, { failed: false });
  expect([runs("refs/heads/main"), runs("refs/heads/change")]).toEqual([true, false]);
});

it("GitLab rotates keys on a schedule and on a manual start, only on the default branch", {
  tags: ["long"],
}, async () => {
  const jobs = (source: string, branch = "main") =>
    gitlabJobs({ CI_PIPELINE_SOURCE: source, CI_COMMIT_BRANCH: branch }, GITLAB_CI.keys);
  expect(await jobs("schedule")).toEqual(["rotate"]);
  expect(await jobs("web")).toEqual(["rotate"]);
  expect(await jobs("push")).toEqual([]);
  expect(await jobs("schedule", "change")).toEqual([]);
});

// Slow: each job runs gatehouse as a process several times.
describe("the scripts of the scheduled jobs", { tags: ["long"], timeout: 120_000 }, () => {
  let trusting: TrustingFleet;
  const program = new PolicyProgram();
  const root = mkdtempSync(join(tmpdir(), "gatehouse-keys-"));
  const bin = npmStub(root);
  const key = { type: "ApiKey", args: { role: "observer", validDays: 90, rotateBefore: 14 } };
  let env: Record<string, string>;

  beforeAll(async () => {
    trusting = await startTrustingFleet();
    const { fleet, issuer } = trusting;
    const { environment } = workflow.jobs.rotate;
    const rotate = {
      name: "rotate-github",
      role: "administrator",
      claims: { environment },
      singleUse: true,
    } as const;
    await trusting.trust(rotate);
    await trusting.trust({
      ...rotate,
      name: "rotate-gitlab",
      claims: { project_path: "team/keys" },
      singleUse: false,
    });
    // The jobs have no stored credential of the service.
    env = {
      ...environmentWithout("GATEHOUSE_", "PULUMI_", "CI_", "ACTIONS_"),
      GATEHOUSE_URL: fleet.service.url,
      GATEHOUSE_TENANT: fleet.tenant,
      NODE_EXTRA_CA_CERTS: issuer.caFile,
      ...policyEnv({ ci: key, nightly: key }),
      STACK: "prod",
      ENGINE: "embedded",
      PULUMI_CONFIG_PASSPHRASE: "correct horse battery staple",
      PULUMI_BACKEND_URL: `file://${program.states}`,
      PATH: [bin, join(COMMAND, "../../../node_modules/.bin"), process.env.PATH].join(delimiter),
    };
    const withUser = { ...env, ...fleet.env };
    await program.stack({ env: withUser, name: "prod" }).result(["up", "--yes", "--skip-preview"]);
  });
  afterAll(async () => {
    await trusting?.stop();
    program.remove();
    rmSync(root, { recursive: true, force: true });
  });

  async function onGithub(keys: string) {
    const { environment, permissions, steps } = workflow.jobs.rotate;
    const step = steps.find(({ name }) => name === "Rotate");
    const secrets = { PULUMI_CONFIG_PASSPHRASE: env.PULUMI_CONFIG_PASSPHRASE };
    const { GATEHOUSE_OIDC = "" } = workflow.env;
    const tokens = permissions["id-token"] === "write" ? trusting.issuer.githubJob({ environment }) : {};
    const given = Object.entries(step?.env ?? {}).map(([name, value]) => [
      name,
      expand(value, { secrets, inputs: { keys } }),
    ]);
    const ofJob = { GATEHOUSE_OIDC, ...tokens, ...Object.fromEntries(given) };
    return bash(step?.run ?? "", program.folder, { ...env, ...ofJob });
  }

  async function onGitlab(keys: string) {
    const job = await gitlabJob("rotate", GITLAB_CI.keys);
    const script = [...job.before_script, ...job.script].join("\n");
    const mint = (aud: string) => trusting.issuer.gitlab({ project_path: "team/keys", aud });
    const tokens = await idTokensOf(job, mint, { ...job.variables, ...env });
    const ofJob = { ...tokens, PROGRAM: program.folder, KEYS: keys };
    return bash(script, root, { ...job.variables, ...env, ...ofJob });
  }

  it.each([
    ["GitHub", onGithub],
    ["GitLab", onGitlab],
  ])("rotate the keys that are due, or named keys, on %s", async (_, job) => {
    expect(await job("")).toMatchObject({ code: 0, log: expect.stringContaining("No API key is due.") });
    const { client } = trusting.fleet;
    const before = (await client.listApiKeys()).length;
    const one = await job("ci");
    expectEnd(one, 0, /1 replaced/);
    const two = await job("ci nightly");
    expectEnd(two, 0, /2 replaced/);
    expect(await client.listApiKeys()).toHaveLength(before + 3);
    const flag = await job("--help");
    expectEnd(flag, 1, "has no API key --help");
  });
});
