# Terraform stores the key in neither state nor plan. Read the key in the console of the service.
resource "gatehouse_install_key" "warehouse" {
  name         = "warehouse"
  mode         = "allowlist"
  allowed_macs = ["02:00:00:00:00:01", "02:00:00:00:00:02"]
  tags         = ["warehouse"]
  valid_days   = 30
}
