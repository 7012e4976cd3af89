package main

import (
	"example.com/pulumi-gatehouse/sdk/go/gatehouse"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		_, err := gatehouse.NewDeviceTagAttachment(ctx, "audited", &gatehouse.DeviceTagAttachmentArgs{
			Device: pulumi.String("web-01"),
			Tag:    pulumi.String("audited"),
		})
		if err != nil {
			return err
		}
		return nil
	})
}
