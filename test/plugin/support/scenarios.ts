import { call } from "../../support/call.ts";
import type { Fleet } from "../../support/fleet.ts";

/** The values that differ between runs, by their placeholder names in recordings. */
export type Named = Readonly<Record<string, string>>;

/** The preparation of the service and the out-of-band changes for one recording. */
export interface Scenario {
  readonly users?: readonly string[];
  /** Prepares the service. */
  prepare(fleet: Fleet): Promise<Named>;
  /** Out-of-band changes, by their names in the recording. */
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

/** The scenarios, by the names of their recordings. */
export const scenarios: Readonly<Record<string, Scenario>> = {
  /** The lifecycle of all resources. */
  life: {
    users: ["bob"],
    async prepare(fleet) {
      await fleet.enroll("gate");
      await fleet.enroll("web-01");
      return { token: await tokenOf(fleet) };
    },
    changes: {
      async "Ana's key is renamed, the rule is deleted, the tags of a device are changed"({ client }) {
        for (const { fingerprint, username, filter } of await client.getPublicKeys()) {
          const body = { name: "out of band", username, filter };
          await client.updatePublicKey({ params: { fingerprint }, body });
        }
        for (const { id } of await client.getFirewallRules())
          await client.deleteFirewallRule({ params: { id } });
        const gate = (await client.getDevices()).find(({ name }) => name === "gate");
        await client.updateDeviceTags({ params: { uid: gate?.uid ?? "" }, body: { tags: ["outofband"] } });
        return undefined;
      },
      async "a rule is created"({ client, tenant }) {
        const rule = { action: "deny", active: true, priority: 7, sourceIp: ".*", username: "root" } as const;
        const { id } = await client.createFirewallRule({ body: { ...rule, filter: { hostname: "^web$" } } });
        return { rule: `${tenant}/${id}` };
      },
    },
  },
  /** Rejected inputs, an object that is created incompletely, and an existing object. */
  failures: {
    async prepare(fleet) {
      await fleet.enroll("old");
      return {};
    },
    changes: {
      async "the declared key is created with other inputs"({ client }) {
        const data = btoa("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJJ4sTd5ZpkJMcxWmfOzWvCXMTc7GT9FvbMrZyApQzJY");
        const body = { name: "another", username: "root", filter: { hostname: ".*" }, data };
        await client.createPublicKey({ body });
        return undefined;
      },
      "the password is changed": (fleet) => changePassword(fleet, "another-horse"),
      "the password is restored": (fleet) => changePassword(fleet, fleet.env.GATEHOUSE_PASSWORD),
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
