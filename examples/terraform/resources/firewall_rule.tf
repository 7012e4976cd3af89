resource "gatehouse_firewall_rule" "office" {
  action    = "allow"
  priority  = 10
  source_ip = provider::gatehouse::cidr("192.0.2.0/24")
  username  = ".*"
  filter    = { hostname = ".*" }
}
