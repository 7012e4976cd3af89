import pulumi
import pulumi_gatehouse as gatehouse

staging = gatehouse.Namespace("staging", name="staging")
carla = gatehouse.Member("carla",
    tenant=staging.tenant,
    email="carla@example.com",
    role=gatehouse.MemberRole.OPERATOR)
