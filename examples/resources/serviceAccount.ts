import { AccessPolicy, ServiceAccount, sshKeyFile } from "@gatehouse-access/provider";

export const backup = new ServiceAccount("backup", {
  name: "backup",
  data: sshKeyFile("keys/ana.pub"),
  validDays: 90,
});

// A replaced account gets another ID. The policy follows it, because it refers to the output.
export const backupAccess = new AccessPolicy("backup", {
  name: "Backup",
  subject: { user: backup.accountId },
  filter: { hostname: ".*" },
  logins: ["backup"],
});
