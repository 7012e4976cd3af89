data "gatehouse_service_account" "backup" {
  selector = "backup"
}
