output "kubernetes" {
  value = provider::gatehouse::kubernetes({
    issuer          = "https://oidc.example.com/cluster-1"
    namespace       = "ops"
    service_account = "access-sync"
  })
}
