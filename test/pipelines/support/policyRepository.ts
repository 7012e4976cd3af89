import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { sshKeyLine } from "../../provider/support/programs.ts";
import { type Fleet, startFleet } from "../../support/fleet.ts";
import { spawnGatehouse } from "../../support/gatehouse.ts";
import { startTrustingFleet, type TrustingFleet } from "../../support/trustingFleet.ts";

const KEY = sshKeyLine("ana");

/** A program that declares a key for each login pattern in policy.json, and a policy test. */
export const PROGRAM_FILES = (folder: string): Record<string, string> => ({
  [`${folder}/Pulumi.yaml`]: "{ name: access, runtime: { name: nodejs, options: { typescript: false } } }\n",
  [`${folder}/package.json`]: '{ "name": "access", "private": true, "main": "index.js" }\n',
  [`${folder}/index.js`]: `const { PublicKey } = require("@gatehouse-access/provider");
for (const [name, username] of Object.entries(require("./policy.json"))) {
  new PublicKey(name, { name, data: ${JSON.stringify(KEY)}, username, filter: { hostname: "^web-" } });
}
// A program must not have the platform's token.
for (const name of ["GITHUB_TOKEN", "GITLAB_TOKEN"]) if (process.env[name]) throw new Error(name + " is here");
`,
  [`${folder}/access.ignore`]:
    "Member * until 2999-12-31: not relevant\nApiKey * until 2999-12-31: not relevant\n" +
    "TrustedWorkload * until 2999-12-31: not relevant\n",
  [`${folder}/access.policy.mjs`]: `import { expect, policyTest } from "@gatehouse-access/provider/policy";
policyTest("no key allows guest", ({ access }) => {
  expect(access).not.toAllow({ login: "guest" });
});
`,
});

/** The file with the login pattern of each key. */
export const policyFile = (folder: string, policy: Readonly<Record<string, string>>) => ({
  [`${folder}/policy.json`]: JSON.stringify(policy),
});

const MODULES = join(import.meta.dirname, "..", "..", "..", "node_modules");

/** The state backend and the passphrase of a repository's stack. */
export const statesIn = (root: string) => ({
  PULUMI_BACKEND_URL: `file://${join(root, "states")}`,
  PULUMI_CONFIG_PASSPHRASE: "correct horse battery staple",
});

/** Links the packages that the program in the folder `policy` imports, and applies the program for the first time. */
export async function applyManually(root: string, fleet: Fleet): Promise<void> {
  symlinkSync(MODULES, join(root, "policy", "node_modules"));
  mkdirSync(join(root, "states"), { recursive: true });
  const first = ["up", "policy", "--yes", "--stack", "prod", "--engine", "embedded", "--skip-preview"];
  expect(await spawnGatehouse(first, { ...fleet.env, ...statesIn(root) }, root)).toMatchObject({
    code: 0,
    stderr: expect.any(String),
  });
}

/** The environment variables with each role's credential, as a pipeline job gets them. */
export type Credentials = Record<
  "observerUser" | "observerKey" | "operator" | "administrator",
  Readonly<Record<string, string>>
>;

/** A service with the device `web-1`, and credentials of each role. */
interface PolicyFleet {
  readonly fleet: Fleet;
  readonly credentials: Credentials;
}

/**
 * Starts a service for tests of pipelines.
 * @param users additional users, without credentials for pipelines
 */
export async function startPolicyFleet(...users: readonly string[]): Promise<PolicyFleet> {
  const fleet = await startFleet([...PIPELINE_USERS, ...users]);
  return { fleet, credentials: await preparePolicyFleet(fleet) };
}

/** The users of the credentials. */
const PIPELINE_USERS = ["watcher", "keeper"];

/** A service that trusts jobs of an issuer. */
interface TrustingPolicyFleet extends PolicyFleet {
  readonly trusting: TrustingFleet;
}

/** Starts a service for tests of pipelines, and an issuer of the tokens of jobs. */
export async function startTrustingPolicyFleet(): Promise<TrustingPolicyFleet> {
  const trusting = await startTrustingFleet(PIPELINE_USERS);
  const { fleet } = trusting;
  return { trusting, fleet, credentials: await preparePolicyFleet(fleet) };
}

async function preparePolicyFleet(fleet: Fleet): Promise<Credentials> {
  await fleet.enroll("web-1");
  return credentialsOf(fleet);
}

async function credentialsOf({ client, tenant }: Fleet): Promise<Credentials> {
  const user = async (name: string, role: "observer" | "administrator") => {
    await client.inviteMember({ params: { tenant }, body: { email: `${name}@example.com`, role } });
    return { GATEHOUSE_USERNAME: name, GATEHOUSE_PASSWORD: "correct-horse" };
  };
  const key = async (role: "observer" | "operator") => {
    const { id } = await client.createApiKey({ body: { name: `pipeline-${role}`, expiresAt: 30, role } });
    return { GATEHOUSE_API_KEY: id };
  };
  return {
    observerUser: await user("watcher", "observer"),
    administrator: await user("keeper", "administrator"),
    observerKey: await key("observer"),
    operator: await key("operator"),
  };
}
