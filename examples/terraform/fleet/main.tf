terraform {
  required_version = ">= 1.8"
  required_providers {
    gatehouse = {
      source = "gatehouse-access/gatehouse"
    }
  }
}

# The service and the credential come from the environment: GATEHOUSE_URL, GATEHOUSE_USERNAME, GATEHOUSE_PASSWORD.
provider "gatehouse" {}

variable "office" {
  description = "The IP address ranges of the office."
  type        = list(string)
  default     = ["198.51.100.0/24"]
}

locals {
  # Access by user: the name of the key file, the logins, and the tags of the devices.
  people = {
    ana = { logins = ["root", "ana"], tags = ["edge"] }
    bob = { logins = ["bob"], tags = ["edge", "lab"] }
  }
}

resource "gatehouse_device_tags" "edge" {
  for_each = toset(["edge-01", "edge-02"])
  device   = each.key
  tags     = ["edge"]
}

resource "gatehouse_device_tags" "lab" {
  device = "lab-01"
  tags   = ["lab"]
}

resource "gatehouse_public_key" "people" {
  for_each = local.people
  name     = each.key
  data     = file("${path.module}/keys/${each.key}.pub")
  username = provider::gatehouse::login(each.value.logins...)
  filter   = { tags = each.value.tags }

  # A filter can contain only tags that a device has.
  depends_on = [gatehouse_device_tags.edge, gatehouse_device_tags.lab]
}

resource "gatehouse_firewall_rule" "office" {
  action    = "allow"
  priority  = 10
  source_ip = provider::gatehouse::cidr(var.office...)
  username  = ".*"
  filter    = { hostname = ".*" }
}

resource "gatehouse_firewall_rule" "all_others" {
  action    = "deny"
  priority  = 1
  source_ip = ".*"
  username  = ".*"
  filter    = { hostname = ".*" }
}

data "gatehouse_access" "ana" {
  only_keys  = ["ana"]
  depends_on = [gatehouse_public_key.people, gatehouse_firewall_rule.office, gatehouse_firewall_rule.all_others]
}

output "grants_of_ana" {
  description = "The logins, client addresses and devices with which ana's key opens a session."
  value       = data.gatehouse_access.ana.grants
}
