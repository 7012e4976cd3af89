data "gatehouse_firewall_rules" "all" {}
