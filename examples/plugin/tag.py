import pulumi
import pulumi_gatehouse as gatehouse

edge = gatehouse.Tag("edge", name="edge")
