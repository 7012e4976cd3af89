data "gatehouse_device" "lab" {
  selector = "lab-01"
}
