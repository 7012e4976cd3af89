# Adds a tag to a device. Other tags of the device do not change.
resource "gatehouse_device_tag_attachment" "audited" {
  device = "web-01"
  tag    = gatehouse_tag.audited.name
}
