data "gatehouse_namespace" "own" {}
