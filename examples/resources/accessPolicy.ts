import { AccessPolicy, hostname } from "@gatehouse-access/provider";

// A login is allowed only if a policy allows it. A deny policy always takes precedence.
export const operators = new AccessPolicy("operators", {
  name: "Operators on web servers",
  subject: { role: "operator" },
  filter: { hostname: hostname("web-01", "web-02") },
  logins: ["deploy"],
  sourceIps: ["192.0.2.0/24"],
  requireReauth: true,
  reauthPeriod: 3600,
});

export const noRoot = new AccessPolicy("no-root", {
  name: "No root",
  action: "deny",
  subject: { allMembers: true },
  filter: { hostname: ".*" },
  logins: ["root"],
});
