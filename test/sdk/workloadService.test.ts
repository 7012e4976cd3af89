import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, onTestFinished } from "vitest";
import {
  AuthenticationError,
  type Client,
  createClient,
  credentialsFromEnvironment,
  type RequestReport,
} from "../../sdk/index.ts";
import { testFolder } from "../support/folder.ts";
import { startTrustingFleet, type TrustingFleet } from "../support/trustingFleet.ts";
import { failure } from "./scriptedClient.ts";

let trusting: TrustingFleet;
let distrust: () => void;
beforeAll(async () => {
  trusting = await startTrustingFleet();
  distrust = trusting.issuer.trust();
});
afterAll(async () => {
  distrust();
  await trusting.stop();
});
afterEach(async () => {
  const { client } = trusting.fleet;
  for (const { id } of await client.listTrustedWorkloads())
    await client.deleteTrustedWorkload({ params: { id } });
});

/** Creates a client with the settings of a pipeline's environment, and the clock of the service. */
function connect(env: Readonly<Record<string, string>>): Client {
  const { fleet, now } = trusting;
  const { url = "", credential } = credentialsFromEnvironment({
    GATEHOUSE_URL: fleet.service.url,
    GATEHOUSE_TENANT: fleet.tenant,
    ...env,
  });
  const onRequest = ({ operation }: RequestReport) => void calls.push(operation);
  const client = createClient({ url, ...(credential && { credential }), timing: { now }, onRequest });
  onTestFinished(() => client.close());
  return client;
}

/** Creates a token of a job of GitLab with the time of the service. */
const token = (claims: object = {}) =>
  trusting.issuer.gitlab(
    { aud: trusting.fleet.service.url, repository: "octo-org/octo-repo", ...claims },
    { now: new Date(trusting.now()) },
  );

/** The operations that the clients of the test have called. */
let calls: string[] = [];
const exchanges = () => calls.filter((operation) => operation === "exchangeWorkloadToken").length;
beforeEach(() => {
  calls = [];
});

it("exchanges one token of GitHub for all clients of the process", async () => {
  const id = await trusting.trust({ singleUse: true });
  const env = { GATEHOUSE_OIDC: "github", ...trusting.issuer.githubJob() };
  const [left, right] = [connect(env), connect(env)];
  await Promise.all([left.getTags(), left.getDevices(), right.getTags()]);
  expect(exchanges()).toBe(1);
  expect(await right.identity()).toEqual({
    kind: "workload",
    tenant: trusting.fleet.tenant,
    workloadId: id,
    workload: {
      name: "deploy",
      role: "observer",
      renewableUntil: expect.any(Date),
      actor: `deploy: ${trusting.issuer.url} "repo:octo-org/octo-repo:environment:prod"`,
    },
  });
  expect(await left.sessionToken()).toBe(await right.sessionToken());
  await expect(left.createFirewallRule({ body: RULE })).rejects.toThrow(/the role operator|administrator/);
});

const RULE = {
  action: "deny" as const,
  active: true,
  priority: 1,
  sourceIp: ".*",
  username: ".*",
  filter: { hostname: ".*" },
};

it("uses a session of each namespace, and rejects a namespace that does not trust the workload", async () => {
  await trusting.trust();
  const { client: owner } = trusting.fleet;
  const { tenantId: other } = await owner.createNamespace({ body: { name: "other" } });
  const { tenantId: closed } = await owner.createNamespace({ body: { name: "closed" } });
  await owner.forTenant(other).createTrustedWorkload({
    body: {
      name: "elsewhere",
      issuer: trusting.issuer.url,
      audience: trusting.fleet.service.url,
      role: "operator",
      claims: { repository: "octo-org/*" },
    },
  });
  const client = connect({ GATEHOUSE_OIDC: "github", ...trusting.issuer.githubJob() });
  await client.getTags();
  expect(await client.forTenant(other).identity()).toMatchObject({
    tenant: other,
    workload: { name: "elsewhere", role: "operator" },
  });
  expect(await client.forTenant(other).getNamespace({ params: { tenant: other } })).toMatchObject({
    name: "other",
  });
  await expect(client.forTenant(closed).getTags()).rejects.toThrow(AuthenticationError);
});

it("reports the claims of a refused token, and exchanges another token only if the file changes", async () => {
  await trusting.trust({ claims: { repository: "octo-org/octo-repo", ref: "refs/heads/main" } });
  const file = join(testFolder(), "token");
  const refused = await token({ ref: "refs/heads/eve", user_email: "ana@example.com" });
  writeFileSync(file, refused);
  const client = connect({ GATEHOUSE_OIDC: "file", GATEHOUSE_OIDC_TOKEN_FILE: file });
  const error = await failure(Promise.all([client.getTags(), client.getDevices()]), AuthenticationError);
  expect(error.message).toContain('ref: "refs/heads/eve"');
  expect(error.message).toContain(
    `namespace ${trusting.fleet.tenant} with the token: iss "${trusting.issuer.url}"`,
  );
  expect(error.message).not.toContain("ana@example.com");
  expect(JSON.stringify(error) + error.stack).not.toContain(refused);
  expect(await failure(client.getTags(), AuthenticationError)).toBe(error);
  expect(exchanges()).toBe(1);

  writeFileSync(file, await token({ ref: "refs/heads/main" }));
  expect(await client.getTags()).toEqual([]);
});

it("exchanges the token again after a change of the claims, and fails after the deletion of the workload", async () => {
  const id = await trusting.trust();
  const { client: owner, service } = trusting.fleet;
  const client = connect({ GATEHOUSE_OIDC: "github", ...trusting.issuer.githubJob() });
  await client.getTags();
  const body = {
    name: "deploy",
    issuer: trusting.issuer.url,
    audience: service.url,
    role: "operator" as const,
    claims: { repository: "octo-org/*" },
  };
  await owner.updateTrustedWorkload({ params: { id }, body });
  expect(await client.getTags()).toEqual([]);
  expect(await client.identity()).toMatchObject({ workload: { role: "operator" } });
  expect(exchanges()).toBe(2);

  await owner.deleteTrustedWorkload({ params: { id } });
  const error = await failure(client.getTags(), AuthenticationError);
  const { length } = trusting.issuer.requests;
  expect(await failure(client.getTags(), AuthenticationError)).toBe(error);
  expect(trusting.issuer.requests).toHaveLength(length);
});

// The last test, because it moves the clock of the service.
it("renews the session in a long run, then exchanges the token that the file has then", async () => {
  await trusting.trust({ maxSessionMinutes: 40, claims: { project_path: "my-group/my-project" } });
  const file = join(testFolder(), "token");
  const inThreeHours = () => Math.floor(trusting.now() / 1000) + 3 * 3600;
  writeFileSync(file, `${await token({ exp: inThreeHours() })}\n`);
  const client = connect({ GATEHOUSE_OIDC: "file", GATEHOUSE_OIDC_TOKEN_FILE: file });
  const used = new Set<string>();
  const call = async () => {
    await Promise.all([client.getTags(), client.getDevices()]);
    used.add(await client.sessionToken());
  };
  for (const minutes of [0, 9, 2, 11, 11, 5]) {
    trusting.advance(minutes);
    await call();
  }
  // Sessions start after 0, 11, 22 and 33 minutes; the last one ends after 40 minutes.
  expect([used.size, exchanges()]).toEqual([4, 1]);

  // The file has another token before the last session ends.
  writeFileSync(file, await token({ exp: inThreeHours() }));
  await call();
  expect([used.size, exchanges()]).toEqual([5, 2]);
  expect((await client.identity()).workload?.renewableUntil.getTime()).toBeGreaterThan(
    trusting.now() + 39 * 60_000,
  );

  // Without another token, the run fails only after the end of the longest session.
  for (const minutes of [14, 14, 11]) {
    trusting.advance(minutes);
    await call();
  }
  trusting.advance(2);
  const error = await failure(client.getTags(), AuthenticationError);
  expect(error.message).toContain("increase max_session_minutes");
  const [first] = (await failure(client.getTags(), AuthenticationError)).message.split(" [");
  expect(error.message).toContain(first);
});
