# You create the secret. Terraform stores the secret in neither state nor plan. Store the secret where the key is used,
# for example in a vault that accepts write-only values. To rotate the secret, increase the version.
variable "pipeline_secret" {
  description = "The secret of the key: a version 4 UUID."
  type        = string
  sensitive   = true
  ephemeral   = true
}

resource "gatehouse_api_key" "pipeline" {
  name           = "pipeline"
  role           = "observer"
  valid_days     = 90
  overlap        = 3 # days for which the old key keeps working
  key_wo         = var.pipeline_secret
  key_wo_version = 1
}
