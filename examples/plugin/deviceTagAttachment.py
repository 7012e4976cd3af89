import pulumi
import pulumi_gatehouse as gatehouse

audited = gatehouse.DeviceTagAttachment("audited",
    device="web-01",
    tag="audited")
