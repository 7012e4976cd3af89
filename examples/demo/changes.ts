import { generateKeyPairSync } from "node:crypto";
import { type Client, where } from "@gatehouse-access/sdk";

/** Who changes things by hand, each with a login of their own. */
export interface People {
  readonly ana: Client;
  readonly bob: Client;
  readonly carla: Client;
}

/** Six things that three people in a hurry would do by hand; each line says one in words. */
export async function changeBehindTheBack({ ana, bob, carla }: People, tenant: string): Promise<string[]> {
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
    "Ana: the contractor's key now admits every login on every device",
    "Ana: Bob's key is gone",
    "Ana: Carla is an administrator",
    "Bob: edge-03 is tagged prod",
    'Carla: a new key "backdoor", for every login on every device',
    "Carla: a new rule that allows everything, at priority 999",
  ];
}

/** A new ed25519 key as the service takes it: an OpenSSH line in base64. Nobody keeps the other half. */
function newKey(): string {
  const { x = "" } = generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" });
  const part = (data: Buffer) => Buffer.concat([Buffer.from([0, 0, 0, data.length]), data]);
  const blob = Buffer.concat([part(Buffer.from("ssh-ed25519")), part(Buffer.from(x, "base64url"))]);
  return Buffer.from(`ssh-ed25519 ${blob.toString("base64")}`).toString("base64");
}
