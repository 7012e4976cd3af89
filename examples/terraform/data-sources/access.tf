# Reads which keys give access to the devices of the lab with the login name root.
data "gatehouse_access" "lab" {
  only_devices = ["tag:lab"]
  logins       = ["root"]
}
