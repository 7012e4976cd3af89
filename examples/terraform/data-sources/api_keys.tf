data "gatehouse_api_keys" "all" {}
