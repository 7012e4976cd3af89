import * as pulumi from "@pulumi/pulumi";
import * as gatehouse from "@gatehouse-access/pulumi";

const gate = new gatehouse.Device("gate", {
    device: "02:00:00:00:0a:01",
    name: "gate",
    status: gatehouse.DeviceStatus.Accepted,
});
