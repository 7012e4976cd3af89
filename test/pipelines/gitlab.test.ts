import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Fleet } from "../support/fleet.ts";
import { gitLabel, gitOnPath } from "../support/git.ts";
import type { TrustingFleet } from "../support/trustingFleet.ts";
import { expectEnd, PIPELINES } from "./support/action.ts";
import {
  GITLAB_CI,
  gitlabJob,
  idTokensOf,
  npmStub,
  runGitlabJob,
  startGitlab,
  type TestGitlab,
} from "./support/gitlab.ts";
import {
  applyManually,
  type Credentials,
  PROGRAM_FILES,
  policyFile,
  startTrustingPolicyFleet,
  statesIn,
} from "./support/policyRepository.ts";

/** The value of CI_PIPELINE_SOURCE for each job. */
const SOURCES = { review: "merge_request_event", main: "push", apply: "push", drift: "schedule" };

// The tests share one project. Each test starts from the project that the previous test left.
describe.runIf(gitOnPath)(
  `the jobs on GitLab, with ${gitLabel}`,
  { tags: ["long"], timeout: 180_000 },
  () => {
    let fleet: Fleet;
    let gitlab: TestGitlab;
    let root: string;
    let bin: string;
    let credentials: Credentials;
    let trusting: TrustingFleet;

    const write = (files: Readonly<Record<string, string>>) => {
      mkdirSync(join(root, "policy"), { recursive: true });
      for (const [path, text] of Object.entries(files)) writeFileSync(join(root, path), text);
    };

    beforeAll(async () => {
      ({ fleet, credentials, trusting } = await startTrustingPolicyFleet());
      const ofProject = { project_path: "team/access" };
      await trusting.trust({ name: "pipeline-review", claims: ofProject });
      await trusting.trust({
        name: "pipeline-apply",
        role: "administrator",
        claims: {
          ...ofProject,
          ref: "main",
          ref_type: "branch",
          ref_protected: "true",
          environment: "production",
        },
      });
      gitlab = await startGitlab();
      root = mkdtempSync(join(tmpdir(), "gatehouse-pipeline-"));
      write({ ...PROGRAM_FILES("policy"), ...policyFile("policy", { ana: "^root$" }) });
      write({ "gitlab.mjs": readFileSync(join(PIPELINES, "gitlab", "gitlab.mjs"), "utf8") });
      mkdirSync(join(root, "states"));
      bin = npmStub(root);
      await applyManually(root, fleet);
    });
    afterAll(async () => {
      await gitlab?.stop();
      await trusting?.stop();
      if (root) rmSync(root, { recursive: true, force: true });
    });

    /**
     * Runs a job of the GitLab example pipeline.
     * @param credential a stored credential; by default, the job has only the tokens of `id_tokens`
     * @param claims claims of these tokens that are replaced
     */
    async function job(
      name: keyof typeof SOURCES,
      credential?: Readonly<Record<string, string>>,
      claims: Readonly<Record<string, string>> = {},
    ) {
      const one = await gitlabJob(name === "main" ? "review" : name, GITLAB_CI.pulumi);
      const env = {
        ENGINE: "embedded",
        GATEHOUSE_URL: fleet.service.url,
        ...statesIn(root),
        GATEHOUSE_TENANT: fleet.tenant,
        PATH: [bin, process.env.PATH].join(delimiter),
      };
      const ofJob = {
        project_path: "team/access",
        pipeline_source: SOURCES[name],
        environment: one.environment,
        ref: name === "review" ? "change" : "main",
        ref_protected: String(name !== "review"),
      };
      const mint = (aud: string) => trusting.issuer.gitlab({ ...ofJob, aud, ...claims });
      const used = credential
        ? { GATEHOUSE_OIDC: "", ...credential }
        : await idTokensOf(one, mint, { ...one.variables, ...env });
      const run = await runGitlabJob({ gitlab, project: root, env }, one, SOURCES[name], used);
      expect(run.log).toContain("npm --prefix policy ci --ignore-scripts");
      return { ...run, artifacts: one.artifacts };
    }
    const usernames = async () => (await fleet.client.getPublicKeys()).map(({ username }) => username);
    const ours = () => gitlab.notes.filter(({ author }) => author === "pipeline");

    it("create one note on the merge request without a stored credential, and update only this note", async () => {
      const planted = "<!-- gatehouse review access/prod -->\nNo blocking findings.";
      gitlab.notes.push({ id: 1, author: "eve", body: planted });
      for (let id = 2; id < 120; id++) gitlab.notes.push({ id, author: "ana", body: "Hm." });
      write(policyFile("policy", { ana: "^(root|deploy)$" }));
      const first = await job("review");
      expectEnd(first, 0);
      expect(ours()).toEqual([
        expect.objectContaining({ body: expect.stringContaining("gains login `deploy`") }),
      ]);
      write(policyFile("policy", { ana: ".*" }));
      const second = await job("review", credentials.observerKey);
      expectEnd(second, 2);
      expect(ours()).toEqual([
        expect.objectContaining({
          body: expect.stringContaining('the policy test "no key allows guest" fails'),
        }),
      ]);
      expect(existsSync(join(root, "reviewed"))).toBe(false);
      expect(gitlab.notes[0]?.body).toBe(planted);
    });

    it("apply only the plan that was reviewed on the default branch", async () => {
      write(policyFile("policy", { ana: "^(root|deploy)$" }));
      const notes = gitlab.notes.length;
      expect(await job("main")).toMatchObject({ code: 0 });
      expect(gitlab.notes).toHaveLength(notes);
      expect((await job("apply", credentials.operator)).code).not.toBe(0);
      const [key] = await fleet.client.getPublicKeys();
      const params = { fingerprint: key?.fingerprint ?? "" };
      const filter = { hostname: "^web-" };
      await fleet.client.updatePublicKey({ params, body: { name: "ana", username: "^x$", filter } });
      const rejected = await job("apply", credentials.administrator);
      expectEnd(rejected, 2, "differs from the reviewed plan");
      expect(await usernames()).toEqual(["^x$"]);
      await fleet.client.updatePublicKey({ params, body: { name: "ana", username: "^root$", filter } });
      const branch = await job("apply", undefined, { ref: "eve", ref_protected: "false" });
      expectEnd(branch, 1, "Permission denied");
      const fork = await job("apply", undefined, { project_path: "eve/access" });
      expectEnd(fork, 1, 'project_path "eve/access"');
      const done = await job("apply");
      expectEnd(done, 0);
      expect(await usernames()).toEqual(["^(root|deploy)$"]);
    });

    it("report drift as JUnit, and exit with 2", async () => {
      const night = async () => {
        const { artifacts, ...run } = await job("drift");
        const report = readFileSync(join(root, artifacts.reports?.junit ?? ""), "utf8");
        return { ...run, report, failures: [...report.matchAll(/<failure/g)].length };
      };
      expect(await night()).toMatchObject({ code: 0, failures: 0 });
      const [key] = await fleet.client.getPublicKeys();
      await fleet.client.deletePublicKey({ params: { fingerprint: key?.fingerprint ?? "" } });
      const drift = await night();
      expect([drift.code, drift.failures]).toEqual([2, 1]);
      expect(drift.report).toMatch(/^<\?xml [^>]*>\s*<testsuite [\s\S]*<\/testsuite>\s*$/);
    });
  },
);
