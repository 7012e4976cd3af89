import * as pulumi from "@pulumi/pulumi";
import * as gatehouse from "@gatehouse-access/pulumi";

const edge = new gatehouse.Tag("edge", {name: "edge"});
