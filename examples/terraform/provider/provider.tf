terraform {
  required_version = ">= 1.11"
  required_providers {
    gatehouse = {
      source = "gatehouse-access/gatehouse"
    }
  }
}

# The credential comes from the environment: GATEHOUSE_USERNAME and GATEHOUSE_PASSWORD, or GATEHOUSE_TOKEN, or
# GATEHOUSE_API_KEY. Set GATEHOUSE_URL too, to confirm that the credential is for this service.
provider "gatehouse" {
  url = var.url
}

variable "url" {
  description = "The URL of the service, for example https://access.example.org."
  type        = string
}
