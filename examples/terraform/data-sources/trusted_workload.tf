data "gatehouse_trusted_workload" "review" {
  selector = "review"
}
