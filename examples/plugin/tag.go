package main

import (
	"example.com/pulumi-gatehouse/sdk/go/gatehouse"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		_, err := gatehouse.NewTag(ctx, "edge", &gatehouse.TagArgs{
			Name: pulumi.String("edge"),
		})
		if err != nil {
			return err
		}
		return nil
	})
}
