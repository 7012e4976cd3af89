output "cidr" {
  value = provider::gatehouse::cidr("10.0.0.0/8", "192.0.2.7")
}
