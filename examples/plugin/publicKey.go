package main

import (
	"example.com/pulumi-gatehouse/sdk/go/gatehouse"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		_, err := gatehouse.NewPublicKey(ctx, "ana", &gatehouse.PublicKeyArgs{
			Name:     pulumi.String("Ana, gateways"),
			Data:     pulumi.String("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJJ4sTd5ZpkJMcxWmfOzWvCXMTc7GT9FvbMrZyApQzJY"),
			Username: pulumi.String("^(ana|root)$"),
			Filter: &gatehouse.PublicKeyFilterArgs{
				Tags: pulumi.StringArray{
					pulumi.String("edge"),
				},
			},
		})
		if err != nil {
			return err
		}
		return nil
	})
}
