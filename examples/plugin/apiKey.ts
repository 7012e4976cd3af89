import * as pulumi from "@pulumi/pulumi";
import * as gatehouse from "@gatehouse-access/pulumi";

const ci = new gatehouse.ApiKey("ci", {
    role: gatehouse.ApiKeyRole.Observer,
    validDays: gatehouse.ApiKeyValidDays.Days90,
    rotateBefore: 14,
    overlap: 3,
});
