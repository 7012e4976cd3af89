output "login" {
  value = provider::gatehouse::login("root", "ana") # ^(ana|root)$
}
