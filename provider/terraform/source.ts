/** The provider's address in configurations, as `required_providers` names it. */
export const SOURCE = "gatehouse-access/gatehouse";

/**
 * True for this provider's whole source in any registry or mirror, whatever a configuration calls the provider.
 * @param source as plans have it, such as `registry.terraform.io/gatehouse-access/gatehouse`
 */
export const isOwnSource = (source: string): boolean => `/${source}`.endsWith(`/${SOURCE}`);

/** The first versions of Terraform that have what the provider uses: the rest of it works from `least` on. */
export const TERRAFORM_VERSIONS = {
  least: "1.5",
  functions: "1.8",
  ephemeral: "1.10",
  writeOnly: "1.11",
} as const;
