output "hostname" {
  value = provider::gatehouse::hostname("edge-01") # ^edge-01$
}
