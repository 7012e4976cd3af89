package main

import (
	"example.com/pulumi-gatehouse/sdk/go/gatehouse"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		_, err := gatehouse.NewFirewallRule(ctx, "office", &gatehouse.FirewallRuleArgs{
			Action:   gatehouse.FirewallRuleActionAllow,
			Priority: pulumi.Int(20),
			SourceIp: pulumi.String("^192\\.0\\.2\\."),
			Username: pulumi.String(".*"),
			Filter: &gatehouse.FirewallRuleFilterArgs{
				Hostname: pulumi.String("^db-0[12]$"),
			},
		})
		if err != nil {
			return err
		}
		_, err = gatehouse.NewFirewallRule(ctx, "elsewhere", &gatehouse.FirewallRuleArgs{
			Action:   gatehouse.FirewallRuleActionDeny,
			Priority: pulumi.Int(10),
			SourceIp: pulumi.String(".*"),
			Username: pulumi.String(".*"),
			Filter: &gatehouse.FirewallRuleFilterArgs{
				Hostname: pulumi.String("^db-0[12]$"),
			},
		})
		if err != nil {
			return err
		}
		return nil
	})
}
