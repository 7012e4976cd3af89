import { generateKeyPairSync } from "node:crypto";
import { type Client, where } from "@gatehouse-access/sdk";

/** Clients of the users who change objects out of band. Each user has a separate account. */
export interface Users {
  readonly ana: Client;
  readonly bob: Client;
  readonly carla: Client;
}

/** Makes six changes out of band, and returns a description of each change. */
export async function changeOutOfBand({ ana, bob, carla }: Users, tenant: string): Promise<string[]> {
  const keys = await ana.getPublicKeys({ query: { perPage: 100 } });
  const key = (name: string) => {
    const found = keys.find((candidate) => candidate.name.startsWith(name));
    if (!found) throw new Error(`no key of ${name}`);
    return found;
  };
  const contractor = key("Contractor");
  await ana.updatePublicKey({
    params: { fingerprint: contractor.fingerprint },
    body: { name: contractor.name, username: ".*", filter: { hostname: ".*" } },
  });
  await ana.deletePublicKey({ params: { fingerprint: key("Bob").fingerprint } });

  const { members } = await ana.getNamespace({ params: { tenant } });
  const member = members.find(({ email }) => email === "carla@example.org");
  if (!member) throw new Error("carla is not a member");
  await ana.updateMember({ params: { tenant, uid: member.id }, body: { role: "administrator" } });

  const [device] = await bob.getDevices({ query: { filter: where("name").eq("edge-03") } });
  if (!device) throw new Error("no device edge-03");
  await bob.updateDeviceTags({ params: { uid: device.uid }, body: { tags: ["prod", "edge"] } });

  const everything = { username: ".*", filter: { hostname: ".*" } };
  await carla.createPublicKey({ body: { name: "backdoor", data: newKey(), ...everything } });
  await carla.createFirewallRule({
    body: { action: "allow", active: true, priority: 999, sourceIp: ".*", ...everything },
  });
  return [
    "Ana: changed the contractor's key to allow every login on every device",
    "Ana: deleted Bob's key",
    "Ana: changed Carla's role to administrator",
    "Bob: tagged edge-03 with prod",
    'Carla: created the key "backdoor" for every login on every device',
    "Carla: created a rule that allows everything, with priority 999",
  ];
}

/**
 * Returns a new ed25519 public key in the service's format, that is, a base64-encoded OpenSSH line. Discards the
 * private key.
 */
function newKey(): string {
  const { x = "" } = generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" });
  const part = (data: Buffer) => Buffer.concat([Buffer.from([0, 0, 0, data.length]), data]);
  const blob = Buffer.concat([part(Buffer.from("ssh-ed25519")), part(Buffer.from(x, "base64url"))]);
  return Buffer.from(`ssh-ed25519 ${blob.toString("base64")}`).toString("base64");
}
