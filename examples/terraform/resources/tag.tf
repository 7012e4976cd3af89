# Renaming it here renames it on every device, key and rule at once.
resource "gatehouse_tag" "audited" {
  name = "audited"
}
