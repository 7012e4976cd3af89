data "gatehouse_device_tag_attachment" "lab" {
  selector = "lab-01/lab"
}
