# By MAC address, since the name is what it changes.
resource "gatehouse_device" "gate" {
  device = "02:00:00:00:0a:01"
  name   = "gate"
  status = "accepted"
}
