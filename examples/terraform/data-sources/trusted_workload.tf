data "gatehouse_trusted_workload" "deploy" {
  selector = "deploy"
}
