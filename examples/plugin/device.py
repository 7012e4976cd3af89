import pulumi
import pulumi_gatehouse as gatehouse

gate = gatehouse.Device("gate",
    device="02:00:00:00:0a:01",
    name="gate",
    status=gatehouse.DeviceStatus.ACCEPTED)
