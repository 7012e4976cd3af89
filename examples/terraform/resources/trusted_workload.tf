locals {
  production = provider::gatehouse::github_actions({
    repository  = "acme/fleet"
    environment = "production"
    ref         = "refs/heads/main"
  })
}

resource "gatehouse_trusted_workload" "deploy" {
  name       = "deploy"
  issuer     = local.production.issuer
  claims     = local.production.claims
  single_use = local.production.single_use
  audience   = "https://gatehouse.example.com"
  role       = "administrator"
}
