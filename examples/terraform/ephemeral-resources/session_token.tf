ephemeral "gatehouse_session_token" "own" {}

# Another provider or a provisioner may use it; here a second configuration of this one does.
provider "gatehouse" {
  alias = "session"
  url   = var.url
  token = ephemeral.gatehouse_session_token.own.token
}
