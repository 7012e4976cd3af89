package main

import (
	"example.com/pulumi-gatehouse/sdk/go/gatehouse"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		_, err := gatehouse.NewApiKey(ctx, "ci", &gatehouse.ApiKeyArgs{
			Role:         gatehouse.ApiKeyRoleObserver,
			ValidDays:    gatehouse.ApiKeyValidDaysDays90,
			RotateBefore: pulumi.Int(14),
			Overlap:      pulumi.Int(3),
		})
		if err != nil {
			return err
		}
		return nil
	})
}
