# Who can reach the lab as root.
data "gatehouse_access" "lab" {
  only_devices = ["tag:lab"]
  logins       = ["root"]
}
