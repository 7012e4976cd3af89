data "gatehouse_devices" "accepted" {
  status = "accepted"
}
