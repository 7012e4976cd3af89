import * as pulumi from "@pulumi/pulumi";
import * as gatehouse from "@gatehouse-access/pulumi";

const staging = new gatehouse.Namespace("staging", {name: "staging"});
const carla = new gatehouse.Member("carla", {
    tenant: staging.tenant,
    email: "carla@example.com",
    role: gatehouse.MemberRole.Operator,
});
