data "gatehouse_tags" "all" {}
