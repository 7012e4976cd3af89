/** The provider's address in configurations, as `required_providers` names it. */
export const SOURCE = "gatehouse-access/gatehouse";

/**
 * True for this provider's whole source in any registry or mirror, whatever a configuration calls the provider.
 * @param source as plans have it, such as `registry.terraform.io/gatehouse-access/gatehouse`
 */
export const isOwnSource = (source: string): boolean => `/${source}`.endsWith(`/${SOURCE}`);

/** The programs that run configurations. */
export const TERRAFORM_CLIS = {
  terraform: {
    name: "Terraform",
    command: "terraform",
    /** The host of a source without a host, and so the folder of the provider in a mirror. */
    host: "registry.terraform.io",
    /** The file with the CLI's own settings. */
    settings: "~/.terraformrc",
    /** The first versions that have what the provider uses: the rest of it works from `least` on. */
    versions: { least: "1.5", functions: "1.8", ephemeral: "1.10", writeOnly: "1.11" },
  },
  opentofu: {
    name: "OpenTofu",
    command: "tofu",
    host: "registry.opentofu.org",
    settings: "~/.tofurc",
    versions: { least: "1.6", functions: "1.7", ephemeral: "1.11", writeOnly: "1.11" },
  },
} as const;

/** A program that runs configurations. */
export type TerraformCli = (typeof TERRAFORM_CLIS)[keyof typeof TERRAFORM_CLIS];

/** The values of `--for`. */
export const CHOICES = [...(Object.keys(TERRAFORM_CLIS) as (keyof typeof TERRAFORM_CLIS)[]), "both"] as const;

/** Which programs a command is for. */
export type Choice = (typeof CHOICES)[number];

/** `Terraform 1.8 or OpenTofu 1.7`: the first versions that have something. */
export const versionText = (what: keyof TerraformCli["versions"]): string =>
  Object.values(TERRAFORM_CLIS)
    .map(({ name, versions }) => `${name} ${versions[what]}`)
    .join(" or ");
