import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SOURCE } from "../../provider/terraform/source.ts";
import { sshKeyLine } from "../provider/support/programs.ts";
import { environmentWithout } from "../support/command.ts";
import type { Fleet } from "../support/fleet.ts";
import { gitLabel, gitOnPath, TestRepository } from "../support/git.ts";
import type { TrustingFleet } from "../support/trustingFleet.ts";
import { startWebhook } from "../support/webhook.ts";
import {
  type AttachedProvider,
  hasTerraform,
  hasTofu,
  LABEL,
  startProvider,
  TOFU_LABEL,
} from "../terraform/support/terraform.ts";
import { bash, expectEnd, PIPELINES, runAction } from "./support/action.ts";
import { GITHUB_TOKEN, REPOSITORY, startGithub, type TestGithub } from "./support/github.ts";
import { GITLAB_CI, gitlabJob, idTokensOf, npmStub, runGitlabJob, startGitlab } from "./support/gitlab.ts";
import { type Credentials, startPolicyFleet, startTrustingPolicyFleet } from "./support/policyRepository.ts";

const BIN = join(import.meta.dirname, "..", "..", "node_modules", ".bin");
const KEY = sshKeyLine("ana");
const IGNORED =
  "Member * until 2999-12-31: not relevant\nApiKey * until 2999-12-31: not relevant\nTrustedWorkload * until 2999-12-31: not relevant\n";

/** A configuration with one key. */
const configuration = (username: string) =>
  JSON.stringify({
    terraform: { required_providers: { gatehouse: { source: SOURCE } } },
    resource: {
      gatehouse_public_key: {
        ana: { name: "ana", data: KEY, username, filter: { hostname: "^web-1$" } },
      },
    },
  });

describe.each([
  { command: "terraform", label: LABEL, isAvailable: hasTerraform },
  { command: "tofu", label: TOFU_LABEL, isAvailable: hasTofu },
])("the action with $label", { tags: ["long"], timeout: 180_000 }, ({ command: program, isAvailable }) => {
  let fleet: Fleet;
  let github: TestGithub;
  let root: string;
  let credentials: Credentials;
  beforeAll(async () => {
    ({ fleet, credentials } = await startPolicyFleet());
    github = await startGithub();
    github.permissions = { "pull-requests": "write", issues: "write", actions: "read" };
    root = mkdtempSync(join(tmpdir(), "gatehouse-pipeline-"));
    writeFileSync(join(root, "access.ignore"), IGNORED);
  });
  afterAll(async () => {
    await github?.stop();
    await fleet?.stop();
    if (root) rmSync(root, { recursive: true, force: true });
  });

  /**
   * Runs the composite action. The provider is already running, so this function gives it the job's credential, as
   * Terraform would by starting the provider in the job's environment.
   */
  async function job(
    command: string,
    event: string,
    credential: Readonly<Record<string, string>>,
    runId: number,
  ) {
    const settings = { GATEHOUSE_URL: fleet.service.url, ...credential };
    const provider: AttachedProvider = await startProvider(settings);
    try {
      const env = {
        GITHUB_API_URL: github.url,
        GITHUB_REPOSITORY: REPOSITORY,
        PATH: `${BIN}:${process.env.PATH}`,
        CHECKPOINT_DISABLE: "1",
        TF_CLI_CONFIG_FILE: "/dev/null",
        ...provider.env,
        ...settings,
      };
      const payload = { pull_request: { number: 7, head: { sha: "abc" } } };
      const inputs = { command, terraform: program };
      const given = { inputs, env, payload, event, runId, workspace: root, sha: "abc", token: GITHUB_TOKEN };
      return await runAction(given, root);
    } finally {
      await provider.stop();
    }
  }
  const configure = (username: string) => writeFileSync(join(root, "main.tf.json"), configuration(username));

  it.runIf(isAvailable)(
    "reviews with the role observer, applies an unchanged plan with the role administrator, and reports drift",
    async () => {
      configure("^root$");
      const review = await job("review", "pull_request", credentials.observerKey, 1);
      expectEnd(review, 0);
      expect(github.comments).toEqual([
        expect.objectContaining({ body: expect.stringContaining("gains login `root` on web-1") }),
      ]);
      const reviewed = readFileSync(join(root, "run-1", "gatehouse-reviewed-._prod", "reviewed"), "utf8");
      expect(JSON.parse(reviewed)).toMatchObject({ changes: ["create gatehouse_public_key.ana"] });

      configure("^(root|deploy)$");
      const rejected = await job("apply", "workflow_dispatch", credentials.administrator, 1);
      expectEnd(rejected, 2, "differs from the reviewed plan");
      expect(await fleet.client.getPublicKeys()).toEqual([]);
      configure("^root$");
      const done = await job("apply", "workflow_dispatch", credentials.administrator, 1);
      expectEnd(done, 0, "Apply complete");
      const [key] = await fleet.client.getPublicKeys();
      expect(key?.username).toBe("^root$");

      expect(await job("drift", "schedule", credentials.observerUser, 2)).toMatchObject({ code: 0 });
      const params = { fingerprint: key?.fingerprint ?? "" };
      const filter = { hostname: "^web-1$" };
      await fleet.client.updatePublicKey({ params, body: { name: "ana", username: "^x$", filter } });
      const drift = await job("drift", "schedule", credentials.observerKey, 3);
      expectEnd(drift, 2);
      expect(github.issues).toEqual([expect.objectContaining({ body: expect.stringContaining("username") })]);
      expect(github.faults).toEqual([]);
    },
  );
});

// In these tests, Terraform itself starts the provider with the job's environment. The provider is installed as users
// install it.
describe.runIf(hasTerraform && gitOnPath)(
  `jobs with ${LABEL}, with ${gitLabel}`,
  { tags: ["long"], timeout: 180_000 },
  () => {
    let fleet: Fleet;
    let root: string;
    let bin: string;
    let credentials: Credentials;
    let trusting: TrustingFleet;
    beforeAll(async () => {
      ({ fleet, credentials, trusting } = await startTrustingPolicyFleet());
      const claims = { project_path: "team/access" };
      await trusting.trust({ name: "pipeline-review", claims });
      const ofApply = { ...claims, environment: "production", ref_protected: "true" };
      await trusting.trust({ name: "pipeline-apply", role: "administrator", claims: ofApply });
      root = mkdtempSync(join(tmpdir(), "gatehouse-pipeline-"));
      bin = npmStub(root);
      const terraform = execFileSync("/bin/sh", ["-c", "command -v terraform"], { encoding: "utf8" }).trim();
      const wrapper = `#!/bin/sh\nenv | grep "_TOKEN=" | grep -v "^GATEHOUSE_OIDC_TOKEN=" >> "${root}/tokens"\nexec "${terraform}" "$@"\n`;
      writeFileSync(join(bin, "terraform"), wrapper, { mode: 0o755 });
    });
    afterAll(async () => {
      await trusting?.stop();
      if (root) rmSync(root, { recursive: true, force: true });
    });
    const environment = (): Record<string, string> => ({
      ...environmentWithout("GATEHOUSE_", "TF_", "CI_", "GITLAB_"),
      HOME: root,
      CHECKPOINT_DISABLE: "1",
      GATEHOUSE_URL: fleet.service.url,
      PATH: [bin, BIN, dirname(process.execPath), process.env.PATH].join(delimiter),
    });
    const keys = async () => (await fleet.client.getPublicKeys()).map(({ username }) => username);

    it("on GitLab review as an observer, apply an unchanged plan as an administrator, and report drift, without a stored credential", async () => {
      const gitlab = await startGitlab();
      const project = join(root, "project");
      mkdirSync(join(project, "policy"), { recursive: true });
      cpSync(join(PIPELINES, "gitlab", "gitlab.mjs"), join(project, "gitlab.mjs"));
      writeFileSync(join(project, "policy", "access.ignore"), IGNORED);
      const configure = (username: string) =>
        writeFileSync(join(project, "policy", "main.tf.json"), configuration(username));
      const job = async (name: string, source: string) => {
        const one = await gitlabJob(name, GITLAB_CI.terraform);
        const env = { ...environment(), GATEHOUSE_TENANT: fleet.tenant, PLAN: join(root, "plan") };
        const claims = { environment: one.environment, ref_protected: String(name === "apply") };
        const mint = (aud: string) => trusting.issuer.gitlab({ project_path: "team/access", aud, ...claims });
        const used = await idTokensOf(one, mint, { ...one.variables, ...env });
        const run = await runGitlabJob({ gitlab, project, env }, one, source, used);
        expect([existsSync(env.PLAN), existsSync(`${env.PLAN}.json`)]).toEqual([false, false]);
        return run;
      };

      configure("^root$");
      const review = await job("review", "merge_request_event");
      expectEnd(review, 0);
      expect(gitlab.notes).toEqual([
        expect.objectContaining({ body: expect.stringContaining("gains login `root` on web-1") }),
      ]);
      configure("^(root|deploy)$");
      const rejected = await job("apply", "push");
      expectEnd(rejected, 2, "differs from the reviewed plan");
      configure("^root$");
      expect(await job("review", "push")).toMatchObject({ code: 0 });
      const done = await job("apply", "push");
      expectEnd(done, 0, "Apply complete");
      expect(await keys()).toEqual(["^root$"]);
      expect(gitlab.notes).toHaveLength(1);

      const [key] = await fleet.client.getPublicKeys();
      const params = { fingerprint: key?.fingerprint ?? "" };
      await fleet.client.deletePublicKey({ params });
      expect(await job("drift", "schedule")).toMatchObject({ code: 2 });
      expect(readFileSync(join(project, "drift.xml"), "utf8")).toContain("<failure");
      expect(readFileSync(join(root, "tokens"), "utf8")).toBe("");
      await gitlab.stop();
    });

    it("started by a timer send drift to a webhook", async () => {
      const hook = await startWebhook();
      mkdirSync(join(root, "origin"));
      const origin = new TestRepository(join(root, "origin"));
      origin.write({
        "main.tf.json": JSON.stringify({
          terraform: { required_providers: { gatehouse: { source: SOURCE } } },
        }),
        "access.ignore": IGNORED,
        ".gitignore": ".terraform/\nterraform.tfstate*\naccess.notified.*\n",
      });
      origin.commit("a configuration of nothing");
      const clone = join(root, "clone");
      origin.git("clone", "--quiet", origin.root, clone);
      const secrets = join(root, "credentials");
      mkdirSync(secrets);
      const { GATEHOUSE_API_KEY = "" } = credentials.observerKey;
      const files = { "api-key": GATEHOUSE_API_KEY, passphrase: "", webhook: hook.url };
      for (const [name, secret] of Object.entries(files)) writeFileSync(join(secrets, name), secret);
      await bash("gatehouse terraform install", root, environment());
      const night = () =>
        bash(join(PIPELINES, "timer", "gatehouse-drift.sh"), root, {
          ...environment(),
          POLICY: clone,
          TERRAFORM: "terraform",
          NOTIFY: "json",
          CREDENTIALS_DIRECTORY: secrets,
        });

      expect(await night()).toEqual({ code: 0, log: "" });
      const rule = { action: "allow" as const, active: true, priority: 1, sourceIp: ".*", username: ".*" };
      await fleet.client.createFirewallRule({ body: { ...rule, filter: { hostname: ".*" } } });
      expect(await night()).toEqual({ code: 2, log: "" });
      // Commits the lock file that the first run of Terraform wrote.
      const lock = ".terraform.lock.hcl";
      origin.write({ [lock]: readFileSync(join(clone, lock), "utf8"), "README.md": "# Policy\n" });
      const merged = origin.commit("versions of providers");
      expect(await night()).toEqual({ code: 2, log: "" });
      expect(new TestRepository(clone).git("rev-parse", "HEAD")).toBe(merged);
      expect(hook.messages).toMatchObject([
        { event: "found", findings: [expect.stringContaining("FirewallRule")] },
      ]);
      writeFileSync(join(secrets, "api-key"), "4d6e1d2c-0000-4000-8000-000000000000");
      const failed = await night();
      expectEnd(failed, 1, /credential|API key/i);
      await hook.stop();
    });
  },
);
