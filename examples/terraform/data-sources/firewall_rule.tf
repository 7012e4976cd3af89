data "gatehouse_firewall_rule" "default" {
  selector = "deny at priority 1"
}
