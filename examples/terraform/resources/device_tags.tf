resource "gatehouse_device_tags" "edge" {
  for_each = toset(["edge-01", "edge-02"])
  device   = each.key
  tags     = ["edge", "prod"]
}
