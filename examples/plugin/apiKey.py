import pulumi
import pulumi_gatehouse as gatehouse

ci = gatehouse.ApiKey("ci",
    role=gatehouse.ApiKeyRole.OBSERVER,
    valid_days=gatehouse.ApiKeyValidDays.DAYS90,
    rotate_before=14,
    overlap=3)
