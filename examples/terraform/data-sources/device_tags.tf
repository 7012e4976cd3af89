data "gatehouse_device_tags" "lab" {
  selector = "lab-01"
}
