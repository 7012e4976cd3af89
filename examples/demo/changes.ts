import { type Client, where } from "@gatehouse-access/sdk";

/** What somebody in a hurry would do by hand; each line says it in words. */
export async function changeBehindTheBack(client: Client, tenant: string): Promise<string[]> {
  const keys = await client.getPublicKeys({ query: { perPage: 100 } });
  const key = (name: string) => {
    const found = keys.find((candidate) => candidate.name.startsWith(name));
    if (!found) throw new Error(`no key of ${name}`);
    return found;
  };
  const contractor = key("Contractor");
  await client.updatePublicKey({
    params: { fingerprint: contractor.fingerprint },
    body: { name: contractor.name, username: ".*", filter: { hostname: ".*" } },
  });
  await client.deletePublicKey({ params: { fingerprint: key("Bob").fingerprint } });

  const { members } = await client.getNamespace({ params: { tenant } });
  const carla = members.find((member) => member.email === "carla@example.org");
  if (!carla) throw new Error("carla is not a member");
  await client.updateMember({ params: { tenant, uid: carla.id }, body: { role: "administrator" } });

  const [device] = await client.getDevices({ query: { filter: where("name").eq("edge-03") } });
  if (!device) throw new Error("no device edge-03");
  await client.updateDeviceTags({ params: { uid: device.uid }, body: { tags: ["prod", "edge"] } });
  return [
    "the contractor's key now admits every login on every device",
    "Bob's key is gone",
    "Carla is an administrator",
    "edge-03 is tagged prod",
  ];
}
