resource "gatehouse_member" "carla" {
  email = "carla@example.com"
  role  = "operator"
}
