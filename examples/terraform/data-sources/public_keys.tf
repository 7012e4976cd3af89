data "gatehouse_public_keys" "all" {}
