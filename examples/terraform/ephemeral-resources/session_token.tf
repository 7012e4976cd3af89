ephemeral "gatehouse_session_token" "own" {}

# Another provider or a provisioner can use the token. Here, a second configuration of this provider uses it.
provider "gatehouse" {
  alias = "session"
  url   = var.url
  token = ephemeral.gatehouse_session_token.own.token
}
