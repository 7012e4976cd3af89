import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createKey, type Fleet } from "../support/fleet.ts";
import { gitLabel, gitOnPath, TestRepository } from "../support/git.ts";
import type { TrustingFleet } from "../support/trustingFleet.ts";
import { expectEnd, type JobRun, PIPELINES } from "./support/action.ts";
import { BOT, REPOSITORY, startGithub, type TestGithub } from "./support/github.ts";
import { type GithubEvent, GithubProject, type JobName } from "./support/githubJob.ts";
import {
  applyManually,
  type Credentials,
  PROGRAM_FILES,
  policyFile,
  startTrustingPolicyFleet,
  statesIn,
} from "./support/policyRepository.ts";

const MARKER = "<!-- gatehouse review access/prod -->";

// The tests share one repository. Each test starts from the repository that the previous test left.
describe.runIf(gitOnPath)(
  `the action on GitHub, with ${gitLabel}`,
  { tags: ["long"], timeout: 180_000 },
  () => {
    let fleet: Fleet;
    let github: TestGithub;
    let root: string;
    let repository: TestRepository;
    let credentials: Credentials;
    let trusting: TrustingFleet;
    let project: GithubProject;

    beforeAll(async () => {
      ({ fleet, credentials, trusting } = await startTrustingPolicyFleet());
      const ofRepository = { repository: REPOSITORY, repository_owner_id: "65" };
      await trusting.trust({ name: "pipeline-review", claims: ofRepository, singleUse: true });
      await trusting.trust({
        name: "pipeline-apply",
        role: "administrator",
        singleUse: true,
        claims: { ...ofRepository, environment: "production", ref: "refs/heads/main" },
      });
      github = await startGithub();
      root = mkdtempSync(join(tmpdir(), "gatehouse-pipeline-"));
      repository = new TestRepository(root);
      repository.write(PROGRAM_FILES("policy"));
      repository.write({
        ".gitignore": "node_modules\n/artifacts\n/states\n",
        "artifacts/.keep": "",
        "states/.keep": "",
      });
      cpSync(join(PIPELINES, "github"), join(root, ".github"), { recursive: true });
      repository.write(policyFile("policy", { ana: "^root$" }));
      await applyManually(root, fleet);
      repository.commit("the first policy, applied manually");
      project = new GithubProject({
        repository,
        github,
        issuer: trusting.issuer,
        workflow: "access.yml",
        secrets: { PULUMI_CONFIG_PASSPHRASE: statesIn(root).PULUMI_CONFIG_PASSPHRASE },
        env: {
          GATEHOUSE_URL: fleet.service.url,
          GATEHOUSE_TENANT: fleet.tenant,
          PULUMI_BACKEND_URL: statesIn(root).PULUMI_BACKEND_URL,
        },
      });
    });
    afterAll(async () => {
      await github?.stop();
      await trusting?.stop();
      if (root) rmSync(root, { recursive: true, force: true });
    });
    afterEach(() => expect(github.faults).toEqual([]));

    /** Returns the variables of a job with a stored credential. */
    const stored = (credential?: Readonly<Record<string, string>>) =>
      credential && { GATEHOUSE_OIDC: "", ...credential };

    /** Runs a job of the workflow. @param credential a stored credential; undefined for a job without one */
    const job = (
      name: JobName,
      credential: Readonly<Record<string, string>> | undefined,
      event: GithubEvent,
    ): Promise<JobRun & { readonly id: number }> =>
      withoutSecrets(
        project.job(name, { ...event, env: { ...stored(credential), ...event.env } }),
        credential,
      );

    const pushed = (number: number, credential?: Readonly<Record<string, string>>) =>
      withoutSecrets(project.pushed(number, stored(credential)), credential);

    const merged = (number: number, credential?: Readonly<Record<string, string>>) =>
      withoutSecrets(project.merged(number, stored(credential)), credential);

    const change = (number: number, policy: Record<string, string>) => {
      repository.write(policyFile("policy", policy));
      repository.commit(`a change of #${number}`);
    };
    const usernames = async () =>
      Object.fromEntries((await fleet.client.getPublicKeys()).map(({ name, username }) => [name, username]));
    const ours = () => github.comments.filter(({ login }) => login === BOT);

    it("comments on a pull request without a stored credential, and updates only its own comment", async () => {
      const planted = `${MARKER}\n## Access review of \`access/prod\`\n\nNo blocking findings.`;
      github.comments.push({ id: 1, number: 7, login: "eve", body: planted, state: "open" });
      // The comments of other users fill more than one page of the API.
      for (let id = 2; id < 120; id++)
        github.comments.push({ id, number: 7, login: "ana", body: "Hm.", state: "open" });
      change(7, { ana: "^(root|deploy)$" });
      const first = await pushed(7);
      expectEnd(first, 0);
      expect(first.steps).toContain("Upload the reviewed plan");
      expect(ours()).toHaveLength(1);
      expect(ours()[0]?.body).toMatch(
        /^<!-- gatehouse review access\/prod -->\n[\s\S]*gains login `deploy` on web-1/,
      );
      expect(first.summary).toContain("gains login `deploy`");

      change(7, { ana: "^(root|ops)$" });
      const second = await pushed(7, credentials.observerKey);
      expectEnd(second, 0);
      expect(ours()).toHaveLength(1);
      expect(ours()[0]?.body).toContain("gains login `ops` on web-1");
      expect(ours()[0]?.body).toContain(repository.git("rev-parse", "HEAD"));
      expect(github.comments[0]?.body).toBe(planted);
      expect(await usernames()).toEqual({ ana: "^root$" });
    });

    it("applies the reviewed plan after the merge, only with the role administrator", async () => {
      const rejected = await merged(7, credentials.operator);
      expect(rejected.code).not.toBe(0);
      // A job of another branch gets the role observer, and a job of another repository gets no session.
      const branch = await job("apply", undefined, { event: "push", claims: { ref: "refs/heads/eve" } });
      expectEnd(branch, 1, "Permission denied");
      const elsewhere = await job("apply", undefined, {
        event: "push",
        claims: { repository: "eve/access" },
      });
      expectEnd(elsewhere, 1, /[Tt]he server refused the token of the workload .* repository "eve\/access"/);
      expect(await usernames()).toEqual({ ana: "^root$" });
      github.emptyPullLookups = 2;
      const done = await job("apply", undefined, { event: "push" });
      expectEnd(done, 0);
      expect(await usernames()).toEqual({ ana: "^(root|ops)$" });
      const [entry] = await fleet.client.getAuditTrail({
        params: { tenant: fleet.tenant },
        query: { perPage: 1 },
      });
      expect(entry?.actor).toMatchObject({
        kind: "workload",
        name: expect.stringMatching(/^pipeline-apply: https:\/\/127\.0\.0\.1:\d+ "repo:/),
      });
    });

    it("fails without the permission id-token: write", async () => {
      const env = { ACTIONS_ID_TOKEN_REQUEST_URL: "" };
      const run = await job("review", undefined, { event: "workflow_dispatch", env });
      expectEnd(run, 1, "ACTIONS_ID_TOKEN_REQUEST_URL is not set, but GATEHOUSE_OIDC is github");
    });

    it("reports a failing policy test in the comment, and exits with 2", async () => {
      change(8, { ana: ".*" });
      const run = await pushed(8);
      expectEnd(run, 2);
      expect(ours().find(({ number }) => number === 8)?.body).toContain(
        'the policy test "no key allows guest" fails',
      );
      expect(run.steps).not.toContain("Upload the reviewed plan");
      const apply = await merged(8);
      expectEnd(apply, 1, "; start this workflow manually");
      expect(await usernames()).toEqual({ ana: "^(root|ops)$" });
    });

    it("rejects a plan if the service has changed since the review, and applies a new review after a manual start", async () => {
      change(9, { ana: "^(root|deploy)$" });
      expect(await pushed(9)).toMatchObject({ code: 0 });
      const { id } = await fleet.client.createFirewallRule({ body: FROZEN });
      const rejected = await merged(9);
      expectEnd(rejected, 2, "is new on the service");
      expect(await usernames()).toEqual({ ana: "^(root|ops)$" });
      await fleet.client.deleteFirewallRule({ params: { id } });

      const again = await job("review", undefined, { event: "workflow_dispatch" });
      expectEnd(again, 0);
      expect(again.steps).not.toContain("Comment");
      project.nextRun = again.id;
      const done = await job("apply", credentials.administrator, { event: "workflow_dispatch" });
      expectEnd(done, 0);
      expect(await usernames()).toEqual({ ana: "^(root|deploy)$" });
    });

    it("rejects a push without a pull request", async () => {
      const run = await job("apply", credentials.administrator, { event: "push", sha: "0".repeat(40) });
      expectEnd(run, 1, "cannot find a pull request that was merged as 000");
    });

    it("opens one issue for drift, does not change the issue while the drift stays the same, and then closes the issue", async () => {
      const night = () => job("drift", undefined, { event: "schedule" });
      const fingerprint = await createKey(fleet.client, "backdoor", "^root$");
      const planted = {
        id: 5,
        number: 5,
        login: "eve",
        body: "<!-- gatehouse drift policy/prod -->\nhm",
        state: "open",
      };
      github.issues.push(planted);
      const first = await night();
      expectEnd(first, 2);
      const [, issue] = github.issues;
      expect(issue).toMatchObject({
        login: BOT,
        state: "open",
        title: "Drift of the access policy of policy/prod",
      });
      expect(issue?.body).toContain("backdoor");

      const before = github.requests.length;
      expect(await night()).toMatchObject({ code: 2 });
      expect(github.requests.slice(before)).toEqual([expect.stringMatching(/^GET /)]);

      await fleet.client.createFirewallRule({ body: FROZEN });
      expect(await night()).toMatchObject({ code: 2 });
      expect(issue?.body).toContain("FirewallRule");
      expect(github.issues).toHaveLength(2);

      await fleet.client.deletePublicKey({ params: { fingerprint } });
      for (const { id } of await fleet.client.getFirewallRules()) {
        await fleet.client.deleteFirewallRule({ params: { id } });
      }
      expect(await night()).toMatchObject({ code: 0 });
      expect(issue).toMatchObject({ state: "closed" });
      expect(github.comments.at(-1)).toMatchObject({
        number: issue?.number,
        body: expect.stringContaining("found no drift"),
      });
      expect(planted).toMatchObject({ state: "open", body: expect.stringMatching(/hm$/) });
    });

    it("keeps the comment of an earlier push, and exits with 1 if the review fails", async () => {
      change(10, { ana: "^(root|deploy)$" });
      const run = await pushed(10, { GATEHOUSE_API_KEY: "00000000-0000-4000-8000-000000000000" });
      expect([run.code, run.steps]).toEqual([
        1,
        ["Set the artifact's name", "Review", "Exit with the code of gatehouse"],
      ]);
    });
  },
);

/** Checks that a job prints no secret of a stored credential. */
async function withoutSecrets<Run extends JobRun>(
  running: Promise<Run>,
  { GATEHOUSE_USERNAME: _, ...secrets }: Readonly<Record<string, string>> = {},
): Promise<Run> {
  const run = await running;
  for (const secret of Object.values(secrets)) expect(run.log + run.summary).not.toContain(secret);
  return run;
}

const FROZEN = {
  action: "deny" as const,
  active: true,
  priority: 1,
  sourceIp: ".*",
  username: "^x$",
  filter: { hostname: "^web-1$" },
};
