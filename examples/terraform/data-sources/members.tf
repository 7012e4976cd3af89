data "gatehouse_members" "all" {}
