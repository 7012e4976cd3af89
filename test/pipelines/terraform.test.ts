import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sshKeyLine } from "../provider/support/programs.ts";
import { type Fleet, startFleet } from "../support/fleet.ts";
import {
  type AttachedProvider,
  hasTerraform,
  LABEL,
  SOURCE,
  startProvider,
} from "../terraform/support/terraform.ts";
import { runAction } from "./support/action.ts";
import { GITHUB_TOKEN, REPOSITORY, startGithub, type TestGithub } from "./support/github.ts";
import { type Credentials, credentialsOf } from "./support/policyRepository.ts";

const BIN = join(import.meta.dirname, "..", "..", "node_modules", ".bin");
const KEY = sshKeyLine("ana");

describe.runIf(hasTerraform)(`the action with ${LABEL}`, { tags: ["long"], timeout: 180_000 }, () => {
  let fleet: Fleet;
  let github: TestGithub;
  let root: string;
  let credentials: Credentials;
  beforeAll(async () => {
    fleet = await startFleet(["watcher", "keeper"]);
    await fleet.enrol("web-1");
    credentials = await credentialsOf(fleet);
    github = await startGithub();
    github.permissions = { "pull-requests": "write", issues: "write", actions: "read" };
    root = mkdtempSync(join(tmpdir(), "gatehouse-pipeline-"));
    const ignored = "Member * until 2999-12-31: nobody minds\nApiKey * until 2999-12-31: nobody minds\n";
    writeFileSync(join(root, "access.ignore"), ignored);
  });
  afterAll(async () => {
    await github?.stop();
    await fleet?.stop();
    if (root) rmSync(root, { recursive: true, force: true });
  });

  /** Runs the action; the provider has the job's credential, as one that Terraform starts would have. */
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
        ...{ GITHUB_API_URL: github.url, GITHUB_REPOSITORY: REPOSITORY, PATH: `${BIN}:${process.env.PATH}` },
        ...{ CHECKPOINT_DISABLE: "1", TF_CLI_CONFIG_FILE: "/dev/null", ...provider.env, ...settings },
      };
      const payload = { pull_request: { number: 7, head: { sha: "abc" } } };
      const inputs = { command, terraform: "true" };
      const given = { inputs, env, payload, event, runId, workspace: root, sha: "abc", token: GITHUB_TOKEN };
      return await runAction(given, root);
    } finally {
      await provider.stop();
    }
  }
  const configure = (username: string) => {
    const key = { name: "ana", data: KEY, username, filter: { hostname: "^web-1$" } };
    const terraform = { required_providers: { gatehouse: { source: SOURCE } } };
    const resource = { gatehouse_public_key: { ana: key } };
    writeFileSync(join(root, "main.tf.json"), JSON.stringify({ terraform, resource }));
  };

  it("reviews as an observer, applies as an administrator what is still the same, and finds drift", async () => {
    configure("^root$");
    const review = await job("review", "pull_request", credentials.observerKey, 1);
    expect([review.code, review.log]).toEqual([0, expect.any(String)]);
    expect(github.comments).toEqual([
      expect.objectContaining({ body: expect.stringContaining("gains login `root` on web-1") }),
    ]);
    expect(readFileSync(join(root, "run-1", "gatehouse-reviewed", "reviewed"), "utf8")).toMatch(
      /^[0-9a-f]{64}\n$/,
    );

    configure("^(root|deploy)$");
    const refused = await job("apply", "workflow_dispatch", credentials.administrator, 1);
    expect([refused.code, refused.log]).toEqual([2, expect.stringContaining("is not what was reviewed")]);
    expect(await fleet.client.getPublicKeys()).toEqual([]);
    configure("^root$");
    const done = await job("apply", "workflow_dispatch", credentials.administrator, 1);
    expect([done.code, done.log]).toEqual([0, expect.stringContaining("Apply complete")]);
    const [key] = await fleet.client.getPublicKeys();
    expect(key?.username).toBe("^root$");

    expect(await job("drift", "schedule", credentials.observerUser, 2)).toMatchObject({ code: 0 });
    const params = { fingerprint: key?.fingerprint ?? "" };
    const filter = { hostname: "^web-1$" };
    await fleet.client.updatePublicKey({ params, body: { name: "ana", username: "^x$", filter } });
    const drift = await job("drift", "schedule", credentials.observerKey, 3);
    expect([drift.code, drift.log]).toEqual([2, expect.any(String)]);
    expect(github.issues).toEqual([expect.objectContaining({ body: expect.stringContaining("username") })]);
    expect(github.faults).toEqual([]);
  });
});
