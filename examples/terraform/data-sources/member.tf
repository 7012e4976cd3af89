data "gatehouse_member" "dora" {
  selector = "dora@example.com"
}
