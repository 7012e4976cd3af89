import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DeviceTags, FirewallRule, Member, Namespace, PublicKey } from "@gatehouse-access/provider";

const key = (owner: string) => readFileSync(join(__dirname, "keys", `${owner}.pub`), "utf8");
const hosts = (role: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${role}-${String(index + 1).padStart(2, "0")}`);

// Keys select devices by tag. So the tags of a new device determine who can access it.
const tagged = (names: string[], tags: string[]) =>
  names.map((device) => new DeviceTags(device, { device, tags }));

const web = tagged(hosts("web", 12), ["prod", "web"]);
const databases = tagged(hosts("db", 5), ["prod", "database"]);
const edge = tagged(hosts("edge", 8), ["edge"]);

const bob = new Member("bob", { email: "bob@example.org", role: "operator" });
new Member("carla", { email: "carla@example.org", role: "observer" });

// The end of the contract. After this time, neither the membership nor the key gives access.
const expiresAt = "2030-06-30T22:00:00Z";
const dora = new Member("dora", { email: "dora@example.org", role: "observer", expiresAt });

new PublicKey(
  "ana",
  {
    name: "Ana, all of production",
    data: key("ana"),
    owner: "ana@example.org",
    username: "^(root|ana)$",
    filter: { tags: ["prod"] },
  },
  { dependsOn: [...web, ...databases] },
);

new PublicKey(
  "bob",
  {
    name: "Bob, web servers",
    data: key("bob"),
    owner: bob.email,
    username: "^bob$",
    filter: { tags: ["web"] },
  },
  { dependsOn: web },
);

new PublicKey(
  "contractor",
  {
    name: "Contractor, edge only, until June",
    data: key("contractor"),
    owner: dora.email,
    expiresAt,
    username: "^support$",
    filter: { tags: ["edge"] },
  },
  { dependsOn: edge },
);

new PublicKey("deploy", {
  name: "Deployment",
  data: key("deploy"),
  username: "^deploy$",
  filter: { hostname: "^(web|edge)-[0-9]+$" },
});

// Denies all logins on a device under investigation, even with a key that allows them.
new FirewallRule("frozen", {
  action: "deny",
  priority: 100,
  sourceIp: ".*",
  username: ".*",
  filter: { hostname: "^edge-08$" },
});

// A separate namespace for experiments. Its members get no access to production.
const staging = new Namespace("staging", {
  name: "fleet-staging",
  settings: { sessionRecord: true, connectionAnnouncement: "Staging. Break things here." },
});

const carlaInStaging = new Member("carla-staging", {
  tenant: staging.tenant,
  email: "carla@example.org",
  role: "administrator",
});

new PublicKey("carla-staging", {
  tenant: staging.tenant,
  name: "Carla, everything in staging",
  data: key("carla"),
  owner: carlaInStaging.email,
  username: ".*",
  filter: { hostname: ".*" },
});

export const stagingTenant = staging.tenant;
