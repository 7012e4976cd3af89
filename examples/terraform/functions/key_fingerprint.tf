output "fingerprint" {
  value = provider::gatehouse::key_fingerprint(file("${path.module}/keys/carla.pub"))
}
