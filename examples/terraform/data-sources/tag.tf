data "gatehouse_tag" "lab" {
  selector = "lab"
}
