package main

import (
	"example.com/pulumi-gatehouse/sdk/go/gatehouse"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		_, err := gatehouse.NewNamespace(ctx, "staging", &gatehouse.NamespaceArgs{
			Name: pulumi.String("staging"),
			Settings: &gatehouse.NamespaceSettingsArgs{
				SessionRecord:          pulumi.Bool(true),
				ConnectionAnnouncement: pulumi.String("Staging. Break things here."),
			},
		})
		if err != nil {
			return err
		}
		return nil
	})
}
