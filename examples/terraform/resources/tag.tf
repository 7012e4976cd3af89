# A change of the name renames the tag on all devices, keys and rules.
resource "gatehouse_tag" "audited" {
  name = "audited"
}
