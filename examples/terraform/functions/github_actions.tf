output "github_actions" {
  value = provider::gatehouse::github_actions({ repository = "acme/fleet", ref = "refs/heads/main" })
}
