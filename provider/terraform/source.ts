/** The provider's source address in `required_providers`. */
export const SOURCE = "gatehouse-access/gatehouse";

/**
 * Returns true for this provider's full source address in any registry or mirror. The local name has no effect.
 * @param source the address in the form that plans contain, such as `registry.terraform.io/gatehouse-access/gatehouse`
 */
export const isOwnSource = (source: string): boolean => `/${source}`.endsWith(`/${SOURCE}`);

/** The CLIs that run configurations. */
export const TERRAFORM_CLIS = {
  terraform: {
    name: "Terraform",
    command: "terraform",
    /** The default host of a source address. It is also the name of the host's directory in a mirror. */
    host: "registry.terraform.io",
    /** The file with the CLI's settings. */
    settings: "~/.terraformrc",
    /**
     * The first version that supports each feature. `least` is the first version that works with the provider. It
     * applies to each feature without its own entry.
     */
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

/** A CLI that runs configurations. */
export type TerraformCli = (typeof TERRAFORM_CLIS)[keyof typeof TERRAFORM_CLIS];

/** The values of `--for`. */
export const CHOICES = [...(Object.keys(TERRAFORM_CLIS) as (keyof typeof TERRAFORM_CLIS)[]), "both"] as const;

/** A value of `--for`: the name of one CLI, or `both` for Terraform and OpenTofu. */
export type Choice = (typeof CHOICES)[number];

/** Returns the first version of each CLI that supports a feature: `Terraform 1.8 or OpenTofu 1.7`. */
export const versionText = (what: keyof TerraformCli["versions"]): string =>
  Object.values(TERRAFORM_CLIS)
    .map(({ name, versions }) => `${name} ${versions[what]}`)
    .join(" or ");
