resource "gatehouse_access_policy" "operators" {
  name           = "Operators on web servers"
  subject        = { role = "operator" }
  filter         = { hostname = provider::gatehouse::hostname("web-01", "web-02") }
  logins         = ["deploy"]
  source_ips     = ["192.0.2.0/24"]
  require_reauth = true
  reauth_period  = 3600
}
