# One more tag; the others of the device stay as they are.
resource "gatehouse_device_tag_attachment" "audited" {
  device = "web-01"
  tag    = gatehouse_tag.audited.name
}
