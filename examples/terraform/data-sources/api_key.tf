data "gatehouse_api_key" "backup" {
  selector = "backup"
}
