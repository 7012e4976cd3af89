data "gatehouse_access_policy" "operators" {
  selector = "Operators on web servers"
}
