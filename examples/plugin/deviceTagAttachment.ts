import * as pulumi from "@pulumi/pulumi";
import * as gatehouse from "@gatehouse-access/pulumi";

const audited = new gatehouse.DeviceTagAttachment("audited", {
    device: "web-01",
    tag: "audited",
});
