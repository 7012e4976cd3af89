data "gatehouse_install_key" "warehouse" {
  selector = "warehouse"
}
