resource "gatehouse_namespace" "staging" {
  name = "staging"
  settings = {
    session_record          = true
    connection_announcement = "Staging: be careful all the same."
  }

  lifecycle {
    prevent_destroy = false # true for one with devices
  }
}
