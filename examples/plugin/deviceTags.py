import pulumi
import pulumi_gatehouse as gatehouse

gateway = gatehouse.DeviceTags("gateway",
    device="edge-01",
    tags=[
        "edge",
        "gateway",
    ])
