import pulumi
import pulumi_gatehouse as gatehouse

office = gatehouse.FirewallRule("office",
    action=gatehouse.FirewallRuleAction.ALLOW,
    priority=20,
    source_ip="^192\\.0\\.2\\.",
    username=".*",
    filter={
        "hostname": "^db-0[12]$",
    })
elsewhere = gatehouse.FirewallRule("elsewhere",
    action=gatehouse.FirewallRuleAction.DENY,
    priority=10,
    source_ip=".*",
    username=".*",
    filter={
        "hostname": "^db-0[12]$",
    })
