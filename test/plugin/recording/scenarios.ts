import { call } from "../../support/call.ts";
import type { Fleet } from "../../support/fleet.ts";
import type { Named, Scenario } from "./scenario.ts";

const KEYS = [
  "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJJ4sTd5ZpkJMcxWmfOzWvCXMTc7GT9FvbMrZyApQzJY",
  "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILMO4nvJ+W1XjKKfRPsqGdHdmR1YOIvVc2LRZHqKyp8K",
] as const;

const asUser = ({ url = "", tenant = "", password = "" }: Named): Named => ({
  GATEHOUSE_URL: url,
  GATEHOUSE_TENANT: tenant,
  GATEHOUSE_USERNAME: "admin",
  GATEHOUSE_PASSWORD: password,
});

const byToken = ({ url = "", tenant = "", token = "" }: Named): Named => ({
  GATEHOUSE_URL: url,
  GATEHOUSE_TENANT: tenant,
  GATEHOUSE_TOKEN: token,
});

async function tokenOf({ service, env }: Fleet): Promise<string> {
  const { GATEHOUSE_USERNAME: username, GATEHOUSE_PASSWORD: password } = env;
  const { body } = await call(service, "POST /api/login", { body: { username, password } });
  return body.token as string;
}

const UP = ["up", "--yes", "--skip-preview"];
const DESTROY = ["destroy", "--yes", "--skip-preview", "--refresh"];

const keyProgram = (data: string, username: string) => `
  ana:
    type: gatehouse:PublicKey
    properties: { name: Ana, data: ${data}, username: ${username}, filter: { tags: ["\${edge.name}"] } }`;

const ruleProgram = (priority: number) => `
  office:
    type: gatehouse:FirewallRule
    properties: { action: allow, priority: ${priority}, sourceIp: .*, username: .*, filter: { hostname: ^db- } }`;

/** What stays as it is while the rest changes. */
const COMMON = `
  edge:
    type: gatehouse:Tag
    properties: { name: edge }
  staging:
    type: gatehouse:Namespace
    properties: { name: staging, settings: { sessionRecord: true } }
  bob:
    type: gatehouse:Member
    properties: { tenant: "\${staging.tenant}", email: bob@example.com, role: operator }`;

const apiKeyProgram = (name: string, days: number) => `
  ci:
    type: gatehouse:ApiKey
    properties: { name: ${name}, role: observer, validDays: ${days} }`;

/** Everything that a resource goes through. */
const life: Scenario = {
  name: "life",
  users: ["bob"],
  async furnish(fleet) {
    await fleet.enrol("gate");
    await fleet.enrol("web-01");
    return { token: await tokenOf(fleet) };
  },
  env: byToken,
  steps: [
    {
      command: ["preview"],
      program:
        () => `resources:${COMMON}${keyProgram(KEYS[0], "^ana$")}${ruleProgram(20)}${apiKeyProgram("ci-30", 30)}
  tags:
    type: gatehouse:DeviceTags
    properties: { device: gate, tags: ["\${edge.name}", gateway] }
  audited:
    type: gatehouse:DeviceTagAttachment
    properties: { device: "\${device.uid}", tag: audited }
  device:
    type: gatehouse:Device
    properties: { device: web-01, name: web }
outputs:
  secret: \${ci.key}
  members:
    fn::invoke: { function: gatehouse:getMembers, arguments: { tenant: "\${bob.tenant}" }, return: members }
`,
    },
    { command: UP },
    {
      byHand: "Ana's key is renamed, the rule removed, the tags of a device changed",
      async act({ client }) {
        const [key] = await client.getPublicKeys();
        if (!key) throw new Error("there is no key");
        const { fingerprint, username, filter } = key;
        await client.updatePublicKey({
          params: { fingerprint },
          body: { name: "by hand", username, filter },
        });
        for (const { id } of await client.getFirewallRules())
          await client.deleteFirewallRule({ params: { id } });
        const gate = (await client.getDevices()).find(({ name }) => name === "gate");
        await client.updateDeviceTags({ params: { uid: gate?.uid ?? "" }, body: { tags: ["byhand"] } });
        return undefined;
      },
    },
    { command: ["refresh", "--yes", "--skip-preview"] },
    { command: UP },
    {
      command: ["up", "--yes"],
      program: () =>
        `resources:${COMMON}${keyProgram(KEYS[1], "^(ana|root)$")}${ruleProgram(30)}${apiKeyProgram("ci-60", 60)}\n`,
    },
    {
      byHand: "a rule is made",
      async act({ client, tenant }) {
        const filter = { hostname: "^web$" };
        const body = {
          action: "deny",
          active: true,
          priority: 7,
          sourceIp: ".*",
          username: "root",
          filter,
        } as const;
        const { id } = await client.createFirewallRule({ body });
        return { rule: `${tenant}/${id}` };
      },
    },
    {
      command: ({ rule = "" }) => [
        ...["import", "gatehouse:index:FirewallRule", "found", rule],
        ...["--yes", "--skip-preview", "--protect=false"],
      ],
    },
    { command: DESTROY },
  ],
};

/** What does not work: inputs that the plugin refuses, an object that is not completed, one that is in the way. */
const failures: Scenario = {
  name: "failures",
  async furnish(fleet) {
    await fleet.enrol("old");
    return {};
  },
  env: asUser,
  steps: [
    {
      command: ["preview"],
      code: 1,
      program: () =>
        `resources:${ruleProgram(-1)}\n  device:\n    type: gatehouse:Device\n    properties: { device: old, name: no name }\n`,
    },
    {
      byHand: "the key that the program declares is made, another one than it declares",
      async act({ client }) {
        const body = { name: "another", username: "root", filter: { hostname: ".*" }, data: btoa(KEYS[0]) };
        await client.createPublicKey({ body });
        return undefined;
      },
    },
    {
      command: UP,
      code: 1,
      program: () => `resources:
  ana:
    type: gatehouse:PublicKey
    properties: { name: Ana, data: ${KEYS[0]}, username: ana, filter: { hostname: .* } }
  device:
    type: gatehouse:Device
    properties: { device: old, name: older, status: rejected, onDestroy: remove }
`,
    },
    {
      command: UP,
      program: () => `resources:
  ana:
    type: gatehouse:PublicKey
    properties: { name: Ana, data: ${KEYS[0]}, username: ana, filter: { hostname: .* }, adopt: overwrite }
  device:
    type: gatehouse:Device
    properties: { device: old, name: older, status: accepted, onDestroy: remove }
`,
    },
    {
      byHand: "the password is another one",
      act: (fleet) => changePassword(fleet, "another-horse"),
    },
    // Of one resource: how many logins several share is a matter of time.
    {
      command: [
        ...["refresh", "--yes", "--skip-preview"],
        ...["--target", "urn:pulumi:dev::recorded::gatehouse:index:PublicKey::ana"],
      ],
      code: 1,
    },
    {
      byHand: "the password is the old one again",
      act: (fleet) => changePassword(fleet, fleet.env.GATEHOUSE_PASSWORD ?? ""),
    },
    { command: DESTROY },
  ],
};

async function changePassword(fleet: Fleet, password: string): Promise<undefined> {
  await fleet.service.admin(["user", "reset-password", "admin"], password);
  return undefined;
}

/**
 * The rules follow each other, so that each has the number that it had.
 * @param key of the two API keys the one that the lab's provider has
 */
const providersProgram = (named: Named, key: string, priority: number) => `
resources:
  team:
    type: pulumi:providers:gatehouse
    properties:
      { url: "${named.url}", tenant: "${named["team-tenant"]}", token: { fn::secret: "${named["team-token"]}" } }
  lab:
    type: pulumi:providers:gatehouse
    properties: { url: "${named.url}", tenant: "${named["lab-tenant"]}", apiKey: "${named[key]}" }
  own:
    type: gatehouse:FirewallRule
    properties: { action: allow, priority: 1, sourceIp: .*, username: .*, filter: { hostname: .* } }
  teams:
    type: gatehouse:FirewallRule
    properties: { action: allow, priority: ${priority}, sourceIp: .*, username: .*, filter: { hostname: .* } }
    options: { provider: "\${team}", dependsOn: ["\${own}"] }
  labs:
    type: gatehouse:PublicKey
    properties: { name: Ana, data: ${KEYS[0]}, username: ana, filter: { hostname: .* } }
    options: { provider: "\${lab}" }
`;

/** Three provider instances: the default one by settings and environment, one with a token, one with an API key. */
const providers: Scenario = {
  name: "providers",
  async furnish(fleet) {
    const { client } = fleet;
    const team = await client.createNamespace({ body: { name: "team" } });
    const lab = await client.createNamespace({ body: { name: "lab" } });
    const inLab = client.forTenant(lab.tenantId);
    const keys = ["lab-one", "lab-two"].map((name) => inLab.createApiKey({ body: { name, expiresAt: 30 } }));
    const [one, two] = await Promise.all(keys);
    return {
      "team-tenant": team.tenantId,
      "team-token": await tokenOf(fleet),
      "lab-tenant": lab.tenantId,
      "lab-key-1": one?.id ?? "",
      "lab-key-2": two?.id ?? "",
    };
  },
  // A credential of the environment is for the default instance, where it replaces the configured one as a whole.
  env: ({ password = "" }) => ({ GATEHOUSE_USERNAME: "admin", GATEHOUSE_PASSWORD: password }),
  config: (named) => ({ url: named.url ?? "", tenant: named.tenant ?? "", apiKey: named["lab-key-1"] ?? "" }),
  steps: [
    { command: UP, program: (named) => providersProgram(named, "lab-key-1", 2) },
    {
      byHand: "the lab's first API key is revoked",
      async act({ client }, named) {
        const lab = client.forTenant(named["lab-tenant"] ?? "");
        await lab.deleteApiKey({ params: { key: "lab-one" } });
        return undefined;
      },
    },
    { command: UP, program: (named) => providersProgram(named, "lab-key-2", 3) },
    { command: ["refresh", "--yes", "--skip-preview"] },
    { command: DESTROY },
  ],
};

/** An `up` that the user interrupts while the service makes the first of two objects. */
const cancelled: Scenario = {
  name: "cancelled",
  furnish: async (fleet) => ({ token: await tokenOf(fleet) }),
  env: byToken,
  steps: [
    {
      command: UP,
      code: 1,
      interruptedAt: "POST /api/namespaces",
      program: () => `
resources:
  staging:
    type: gatehouse:Namespace
    properties: { name: staging }
  rule:
    type: gatehouse:FirewallRule
    properties:
      { tenant: "\${staging.tenant}", action: deny, priority: 1, sourceIp: .*, username: .*, filter: { hostname: .* } }
`,
    },
    { command: UP },
    { command: DESTROY },
  ],
};

/** All scenarios. */
export const scenarios: readonly Scenario[] = [life, failures, providers, cancelled];
