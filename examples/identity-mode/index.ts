import {
  AccessPolicy,
  ApiKey,
  DeviceTags,
  getNamespaceOutput,
  hostname,
  InstallKey,
  Member,
  Namespace,
  ServiceAccount,
  sshKeyFile,
  Tag,
} from "@gatehouse-access/provider";

const OFFICE = "198.51.100.0/24";

// The namespace exists on the service. The first `up` adopts it, and a `destroy` keeps it.
new Namespace(
  "dev",
  { name: "dev", settings: { sshAccessMode: "identity", sessionRecord: true }, adopt: "overwrite" },
  { retainOnDelete: true },
);

// The service created this policy together with the namespace. Keep it: without a policy, the owner cannot log in.
new AccessPolicy(
  "owner",
  {
    name: "Owner access",
    subject: { user: getNamespaceOutput().owner },
    filter: { hostname: ".*" },
    logins: ["*"],
    adopt: true,
  },
  { retainOnDelete: true },
);

const web = new Tag("web", { name: "web" });
const database = new Tag("database", { name: "database" });
for (const device of ["web-01", "web-02"]) new DeviceTags(device, { device, tags: [web.name] });
new DeviceTags("db-01", { device: "db-01", tags: [database.name] });

const bea = new Member("bea", { email: "bea@example.org", role: "operator" });

new AccessPolicy("operators", {
  name: "Operators on web servers, from the office",
  subject: { role: "operator" },
  filter: { tags: [web.name] },
  logins: ["support"],
  sourceIps: [OFFICE],
});

// The service asks for a password in the browser if the last confirmation is older than an hour.
new AccessPolicy("bea-databases", {
  name: "Bea on databases",
  subject: { user: bea.userId },
  filter: { tags: [database.name] },
  logins: ["postgres", "root"],
  requireReauth: true,
  reauthPeriod: 3600,
});

const deploy = new ServiceAccount("deploy", {
  name: "deploy",
  data: sshKeyFile("keys/deploy.pub"),
  validDays: 90,
});

// A new key replaces the account. The policy follows the new account, because it refers to its ID.
new AccessPolicy("deploy", {
  name: "Deployment",
  subject: { user: deploy.accountId },
  filter: { tags: [web.name] },
  logins: ["deploy"],
});

// A policy that denies decides before all policies that allow. It applies to the owner too.
new AccessPolicy("frozen", {
  name: "Frozen devices",
  action: "deny",
  subject: { allMembers: true },
  filter: { hostname: hostname("web-02") },
  logins: ["*"],
});

// Devices that enroll with this key are accepted, and get the tag.
new InstallKey("web-servers", { name: "web-servers", tags: [web.name], validDays: 30, usageLimit: 10 });

new ApiKey("monitoring", {
  name: "monitoring",
  role: "observer",
  validDays: 90,
  rotateBefore: 14,
  overlap: 3,
});
