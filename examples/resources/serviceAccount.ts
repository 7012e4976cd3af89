import { AccessPolicy, ServiceAccount, sshKeyFile } from "@gatehouse-access/provider";

export const backup = new ServiceAccount("backup", {
  name: "backup",
  data: sshKeyFile("keys/ana.pub"),
  validDays: 90,
});

// The ID of the account changes if the account is replaced. The policy then applies to the new account, because it
// refers to the output `accountId`.
export const backupAccess = new AccessPolicy("backup", {
  name: "Backup",
  subject: { user: backup.accountId },
  filter: { hostname: ".*" },
  logins: ["backup"],
});
