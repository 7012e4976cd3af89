resource "gatehouse_service_account" "backup" {
  name       = "backup"
  data       = file("${path.module}/keys/carla.pub")
  valid_days = 90
}

resource "gatehouse_access_policy" "backup" {
  name    = "Backup"
  subject = { user = gatehouse_service_account.backup.account_id }
  filter  = { hostname = ".*" }
  logins  = ["backup"]
}
