import { call } from "../../support/call.ts";
import type { Fleet } from "../../support/fleet.ts";

/** Values that differ from run to run, by the names that recordings have for them. */
export type Named = Readonly<Record<string, string>>;

/** What a recording needs beside its commands. */
export interface Scenario {
  readonly users?: readonly string[];
  /** Prepares the service. */
  prepare(fleet: Fleet): Promise<Named>;
  /** Changes past the programs, by the names that the recording has for them. */
  readonly changes: Readonly<Record<string, (fleet: Fleet, named: Named) => Promise<Named | undefined>>>;
}

async function tokenOf({ service, env }: Fleet): Promise<string> {
  const { GATEHOUSE_USERNAME: username, GATEHOUSE_PASSWORD: password } = env;
  const { body } = await call(service, "POST /api/login", { body: { username, password } });
  return body.token as string;
}

async function changePassword(fleet: Fleet, password = ""): Promise<undefined> {
  await fleet.service.admin(["user", "reset-password", "admin"], password);
  return undefined;
}

/** The scenarios, by the names of the files with their recordings. */
export const scenarios: Readonly<Record<string, Scenario>> = {
  /** The life of all resources. */
  life: {
    users: ["bob"],
    async prepare(fleet) {
      await fleet.enroll("gate");
      await fleet.enroll("web-01");
      return { token: await tokenOf(fleet) };
    },
    changes: {
      async "Ana's key is renamed, the rule removed, the tags of a device changed"({ client }) {
        for (const { fingerprint, username, filter } of await client.getPublicKeys()) {
          const body = { name: "by hand", username, filter };
          await client.updatePublicKey({ params: { fingerprint }, body });
        }
        for (const { id } of await client.getFirewallRules())
          await client.deleteFirewallRule({ params: { id } });
        const gate = (await client.getDevices()).find(({ name }) => name === "gate");
        await client.updateDeviceTags({ params: { uid: gate?.uid ?? "" }, body: { tags: ["byhand"] } });
        return undefined;
      },
      async "a rule is made"({ client, tenant }) {
        const rule = { action: "deny", active: true, priority: 7, sourceIp: ".*", username: "root" } as const;
        const { id } = await client.createFirewallRule({ body: { ...rule, filter: { hostname: "^web$" } } });
        return { rule: `${tenant}/${id}` };
      },
    },
  },
  /** Inputs that the plugin rejects, an object that is not completed, and one that exists already. */
  failures: {
    async prepare(fleet) {
      await fleet.enroll("old");
      return {};
    },
    changes: {
      async "the key that the program declares is made, another one than it declares"({ client }) {
        const data = btoa("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJJ4sTd5ZpkJMcxWmfOzWvCXMTc7GT9FvbMrZyApQzJY");
        const body = { name: "another", username: "root", filter: { hostname: ".*" }, data };
        await client.createPublicKey({ body });
        return undefined;
      },
      "the password is another one": (fleet) => changePassword(fleet, "another-horse"),
      "the password is the old one again": (fleet) => changePassword(fleet, fleet.env.GATEHOUSE_PASSWORD),
    },
  },
  /** Three provider instances: the default one by settings and environment, one with a token, one with an API key. */
  providers: {
    async prepare(fleet) {
      const { client } = fleet;
      const team = await client.createNamespace({ body: { name: "team" } });
      const lab = await client.createNamespace({ body: { name: "lab" } });
      const newKey = (name: string) =>
        client.forTenant(lab.tenantId).createApiKey({ body: { name, expiresAt: 30 } });
      return {
        "team-tenant": team.tenantId,
        "team-token": await tokenOf(fleet),
        "lab-tenant": lab.tenantId,
        "lab-key-1": (await newKey("lab-one")).id,
        "lab-key-2": (await newKey("lab-two")).id,
      };
    },
    changes: {
      async "the lab's first API key is revoked"({ client }, named) {
        await client.forTenant(named["lab-tenant"] ?? "").deleteApiKey({ params: { key: "lab-one" } });
        return undefined;
      },
    },
  },
};
