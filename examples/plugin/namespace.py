import pulumi
import pulumi_gatehouse as gatehouse

staging = gatehouse.Namespace("staging",
    name="staging",
    settings={
        "session_record": True,
        "connection_announcement": "Staging. Break things here.",
    })
