# The secret is yours: it is in no state and no plan. Keep it where the key is used, for example in a vault that takes
# write-only values too, and count the version up to rotate it.
variable "pipeline_secret" {
  description = "A UUID of version 4."
  type        = string
  sensitive   = true
  ephemeral   = true
}

resource "gatehouse_api_key" "pipeline" {
  name           = "pipeline"
  role           = "observer"
  valid_days     = 90
  overlap        = 3 # days for which the one before goes on working
  key_wo         = var.pipeline_secret
  key_wo_version = 1
}
