output "gitlab_ci" {
  value = provider::gatehouse::gitlab_ci({ project = "acme/fleet", ref_protected = true })
}
