package main

import (
	"example.com/pulumi-gatehouse/sdk/go/gatehouse"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		staging, err := gatehouse.NewNamespace(ctx, "staging", &gatehouse.NamespaceArgs{
			Name: pulumi.String("staging"),
		})
		if err != nil {
			return err
		}
		_, err = gatehouse.NewMember(ctx, "carla", &gatehouse.MemberArgs{
			Tenant: staging.Tenant,
			Email:  pulumi.String("carla@example.com"),
			Role:   gatehouse.MemberRoleOperator,
		})
		if err != nil {
			return err
		}
		return nil
	})
}
