resource "gatehouse_public_key" "carla" {
  name     = "carla"
  data     = file("${path.module}/keys/carla.pub")
  username = provider::gatehouse::login("carla", "root")
  filter   = { hostname = provider::gatehouse::hostname("edge-01", "edge-02") }
}
