package main

import (
	"example.com/pulumi-gatehouse/sdk/go/gatehouse"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		_, err := gatehouse.NewDevice(ctx, "gate", &gatehouse.DeviceArgs{
			Device: pulumi.String("02:00:00:00:0a:01"),
			Name:   pulumi.String("gate"),
			Status: gatehouse.DeviceStatusAccepted,
		})
		if err != nil {
			return err
		}
		return nil
	})
}
