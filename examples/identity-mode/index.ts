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

// The namespace already exists on the service. The first `up` adopts it, and `destroy` does not delete it.
new Namespace(
  "dev",
  { name: "dev", settings: { sshAccessMode: "identity", sessionRecord: true }, adopt: "overwrite" },
  { retainOnDelete: true },
);

// The service created this policy together with the namespace. Keep this policy, because the owner cannot log in
// without a policy.
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

// The service asks for the password in the browser if the user entered it more than an hour ago.
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

// A change to the key replaces the service account. The policy then applies to the new account, because it refers to
// the account's ID.
new AccessPolicy("deploy", {
  name: "Deployment",
  subject: { user: deploy.accountId },
  filter: { tags: [web.name] },
  logins: ["deploy"],
});

// A deny policy takes precedence over all allow policies. This policy applies to the owner too.
new AccessPolicy("frozen", {
  name: "Frozen devices",
  action: "deny",
  subject: { allMembers: true },
  filter: { hostname: hostname("web-02") },
  logins: ["*"],
});

// The service accepts devices that enroll with this key, and adds the tag to them.
new InstallKey("web-servers", { name: "web-servers", tags: [web.name], validDays: 30, usageLimit: 10 });

new ApiKey("monitoring", {
  name: "monitoring",
  role: "observer",
  validDays: 90,
  rotateBefore: 14,
  overlap: 3,
});
