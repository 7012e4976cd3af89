import * as pulumi from "@pulumi/pulumi";
import * as gatehouse from "@gatehouse-access/pulumi";

const gateway = new gatehouse.DeviceTags("gateway", {
    device: "edge-01",
    tags: [
        "edge",
        "gateway",
    ],
});
