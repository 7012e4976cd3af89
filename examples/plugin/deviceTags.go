package main

import (
	"example.com/pulumi-gatehouse/sdk/go/gatehouse"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		_, err := gatehouse.NewDeviceTags(ctx, "gateway", &gatehouse.DeviceTagsArgs{
			Device: pulumi.String("edge-01"),
			Tags: pulumi.StringArray{
				pulumi.String("edge"),
				pulumi.String("gateway"),
			},
		})
		if err != nil {
			return err
		}
		return nil
	})
}
