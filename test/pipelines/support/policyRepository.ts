import { sshKeyLine } from "../../provider/support/programs.ts";
import type { Fleet } from "../../support/fleet.ts";

const KEY = sshKeyLine("ana");

/** A program that declares a key for each login pattern in policy.json, and a test of what it allows. */
export const PROGRAM_FILES = (folder: string): Record<string, string> => ({
  [`${folder}/Pulumi.yaml`]: "{ name: access, runtime: { name: nodejs, options: { typescript: false } } }\n",
  [`${folder}/package.json`]: '{ "name": "access", "private": true, "main": "index.js" }\n',
  [`${folder}/index.js`]: `const { PublicKey } = require("@gatehouse-access/provider");
for (const [name, username] of Object.entries(require("./policy.json"))) {
  new PublicKey(name, { name, data: ${JSON.stringify(KEY)}, username, filter: { hostname: "^web-" } });
}
// No program needs a token of the platform's.
for (const name of ["GITHUB_TOKEN", "GITLAB_TOKEN"]) if (process.env[name]) throw new Error(name + " is here");
`,
  [`${folder}/access.ignore`]:
    "Member * until 2999-12-31: people are of no matter here\nApiKey * until 2999-12-31: nor are keys\n",
  [`${folder}/access.policy.mjs`]: `import { expect, policyTest } from "@gatehouse-access/provider/policy";
policyTest("nobody is guest", ({ access }) => {
  expect(access).not.toAllow({ login: "guest" });
});
`,
});

/** The file that says which names may log in with which key. */
export const policyFile = (folder: string, policy: Readonly<Record<string, string>>) => ({
  [`${folder}/policy.json`]: JSON.stringify(policy),
});

/** What a pipeline may have as credential, as the variables of its job. */
export type Credentials = Record<
  "observerUser" | "observerKey" | "operator" | "administrator",
  Readonly<Record<string, string>>
>;

/** Credentials of each role; the fleet has the users `watcher` and `keeper`. */
export async function credentialsOf({ client, tenant }: Fleet): Promise<Credentials> {
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
