import { cidr, FirewallRule, hostname } from "@gatehouse-access/provider";

// The matching rule with the highest priority applies. If no rule matches, access is allowed.
export const office = new FirewallRule("office", {
  action: "allow",
  priority: 20,
  sourceIp: cidr("192.0.2.0/24", "198.51.100.7"),
  username: ".*",
  filter: { hostname: hostname("db-01", "db-02") },
});

export const elsewhere = new FirewallRule("elsewhere", {
  action: "deny",
  priority: 10,
  sourceIp: ".*",
  username: ".*",
  filter: { hostname: hostname("db-01", "db-02") },
});
