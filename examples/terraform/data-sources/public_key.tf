data "gatehouse_public_key" "laptop" {
  selector = "laptop"
}
