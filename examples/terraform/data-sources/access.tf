# The access to the lab with the login root.
data "gatehouse_access" "lab" {
  only_devices = ["tag:lab"]
  logins       = ["root"]
}
