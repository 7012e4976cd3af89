resource "gatehouse_namespace" "staging" {
  name = "staging"
  settings = {
    session_record          = true
    connection_announcement = "Staging environment."
    session_max_minutes     = 480
    session_idle_minutes    = 15
    ssh_forwarding          = [{ login = "^deploy$", target = "^db-[0-9]+\\.internal:5432$" }]
  }

  lifecycle {
    prevent_destroy = false # set to true for a namespace with devices
  }
}
