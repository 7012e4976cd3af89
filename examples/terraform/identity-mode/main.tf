terraform {
  required_version = ">= 1.11" # write-only arguments
  required_providers {
    gatehouse = {
      source = "gatehouse-access/gatehouse"
    }
  }
}

# The service and the credential come from the environment: GATEHOUSE_URL, GATEHOUSE_USERNAME, GATEHOUSE_PASSWORD.
provider "gatehouse" {}

variable "office" {
  description = "The networks of the office."
  type        = list(string)
  default     = ["198.51.100.0/24"]
}

variable "monitoring_secret" {
  description = "The secret of the API key for the monitoring: a version 4 UUID."
  type        = string
  sensitive   = true
  ephemeral   = true
}

data "gatehouse_namespace" "dev" {}

# The namespace exists on the service. The first apply adopts it.
resource "gatehouse_namespace" "dev" {
  name     = "dev"
  settings = { ssh_access_mode = "identity", session_record = true }
  adopt    = "overwrite"
}

# The service created this policy together with the namespace. Keep it: without a policy, the owner cannot log in.
resource "gatehouse_access_policy" "owner" {
  name    = "Owner access"
  subject = { user = data.gatehouse_namespace.dev.owner }
  filter  = { hostname = ".*" }
  logins  = ["*"]
  adopt   = true
}

resource "gatehouse_tag" "role" {
  for_each = toset(["web", "database"])
  name     = each.key
}

resource "gatehouse_device_tags" "devices" {
  for_each = { web-01 = "web", web-02 = "web", db-01 = "database" }
  device   = each.key
  tags     = [gatehouse_tag.role[each.value].name]
}

resource "gatehouse_member" "bea" {
  email = "bea@example.org"
  role  = "operator"
}

resource "gatehouse_access_policy" "operators" {
  name       = "Operators on web servers, from the office"
  subject    = { role = "operator" }
  filter     = { tags = [gatehouse_tag.role["web"].name] }
  logins     = ["support"]
  source_ips = var.office
}

# The service asks for a password in the browser if the last confirmation is older than an hour.
resource "gatehouse_access_policy" "bea_databases" {
  name           = "Bea on databases"
  subject        = { user = gatehouse_member.bea.user_id }
  filter         = { tags = [gatehouse_tag.role["database"].name] }
  logins         = ["postgres", "root"]
  require_reauth = true
  reauth_period  = 3600
}

resource "gatehouse_service_account" "deploy" {
  name       = "deploy"
  data       = file("${path.module}/keys/deploy.pub")
  valid_days = 90
}

# A new key replaces the account. The policy follows the new account, because it refers to its ID.
resource "gatehouse_access_policy" "deploy" {
  name    = "Deployment"
  subject = { user = gatehouse_service_account.deploy.account_id }
  filter  = { tags = [gatehouse_tag.role["web"].name] }
  logins  = ["deploy"]
}

# A policy that denies decides before all policies that allow. It applies to the owner too.
resource "gatehouse_access_policy" "frozen" {
  name    = "Frozen devices"
  action  = "deny"
  subject = { all_members = true }
  filter  = { hostname = provider::gatehouse::hostname("web-02") }
  logins  = ["*"]
}

# Devices that enroll with this key are accepted, and get the tag. Read the key in the console of the service.
resource "gatehouse_install_key" "web_servers" {
  name        = "web-servers"
  tags        = [gatehouse_tag.role["web"].name]
  valid_days  = 30
  usage_limit = 10
}

# The monitoring reads the secret from the same place as the variable.
resource "gatehouse_api_key" "monitoring" {
  name           = "monitoring"
  role           = "observer"
  valid_days     = 90
  overlap        = 3
  key_wo         = var.monitoring_secret
  key_wo_version = 1
}
