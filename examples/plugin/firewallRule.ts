import * as pulumi from "@pulumi/pulumi";
import * as gatehouse from "@gatehouse-access/pulumi";

const office = new gatehouse.FirewallRule("office", {
    action: gatehouse.FirewallRuleAction.Allow,
    priority: 20,
    sourceIp: "^192\\.0\\.2\\.",
    username: ".*",
    filter: {
        hostname: "^db-0[12]$",
    },
});
const elsewhere = new gatehouse.FirewallRule("elsewhere", {
    action: gatehouse.FirewallRuleAction.Deny,
    priority: 10,
    sourceIp: ".*",
    username: ".*",
    filter: {
        hostname: "^db-0[12]$",
    },
});
