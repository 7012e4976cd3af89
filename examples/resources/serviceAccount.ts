import { AccessPolicy, ServiceAccount, sshKeyFile } from "@gatehouse-access/provider";

export const backup = new ServiceAccount("backup", {
  name: "backup",
  data: sshKeyFile("keys/ana.pub"),
  validDays: 90,
});

// A replacement of the account changes its ID. The policy then applies to the new account, because it refers to the
// output.
export const backupAccess = new AccessPolicy("backup", {
  name: "Backup",
  subject: { user: backup.accountId },
  filter: { hostname: ".*" },
  logins: ["backup"],
});
