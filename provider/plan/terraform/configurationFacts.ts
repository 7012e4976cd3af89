import { type Block, type RootModule, readRootModule } from "./rootModule.ts";

/** Facts about a root module that its files contain and a plan does not contain. */
export interface ConfigurationFacts {
  /**
   * True if the provider blocks with this key set a setting to exactly this variable. The JSON of a plan does not
   * distinguish `var.url` from `"${var.url}/other"`.
   * @param key the key of the block in a plan: `gatehouse`, or `gatehouse.alias`
   */
  readonly isSettingAlone: (key: string, setting: string, variable: string) => boolean;
  /**
   * True if a plan contains the value that Terraform used for this variable when it created the plan: the root module
   * declares the variable, and the variable is not ephemeral. For an ephemeral variable, the JSON of a plan contains
   * the default instead of the used value, and does not indicate that the values may differ.
   */
  readonly isInPlan: (variable: string) => boolean;
  /**
   * Returns the attribute paths in `ignore_changes` of the resource with this address (without keys), and `all` for all
   * attributes. The result is empty for a resource of a child module, whose files are not read. If several blocks
   * declare the resource, only the paths in all of them count. A plan does not show whether Terraform or OpenTofu
   * created it, so only the paths count that both of them would ignore.
   * @default none
   */
  readonly ignoredChanges?: (address: string) => readonly string[];
}

/**
 * Returns the facts about a root module.
 * @param folder folder of the root module; read at the first call of a function of the result
 * @throws EngineError (`plan_file`) from the functions of the result, if the folder or a file cannot be read
 */
export function configurationFacts(folder: string): Required<ConfigurationFacts> {
  let module: RootModule | undefined;
  const blocksOf = (...labels: readonly string[]) => {
    module ??= readRootModule(folder);
    return module.blocks.filter((block) => block.labels.join(" ") === labels.join(" "));
  };
  return {
    isSettingAlone(key, setting, variable) {
      const values = blocksOf("provider", key.split(".")[0] ?? "")
        .filter((block) => providerKey(block) === key)
        .flatMap((block) => block.values.get(setting) ?? []);
      // In a file in JSON, the variable is in a template.
      const isVariable = (value: unknown) => value === `var.${variable}` || value === `\${var.${variable}}`;
      return values.length > 0 && values.every(isVariable);
    },
    isInPlan(variable) {
      const declarations = blocksOf("variable", variable);
      const isKept = ({ values }: Block) => String(values.get("ephemeral") ?? false) === "false";
      return declarations.length > 0 && declarations.every(isKept);
    },
    ignoredChanges(address) {
      const declarations = blocksOf("resource", ...address.split("."));
      const ofTerraform = declarations.filter(({ file }) => !TOFU.test(file));
      // OpenTofu ignores `main.tf` if the folder contains `main.tofu`.
      const ofOpenTofu = declarations.filter(
        ({ file }) => TOFU.test(file) || !module?.files.has(file.replace(/\.tf(\.json)?$/, ".tofu$1")),
      );
      return inAll([...listsOf(ofTerraform), ...listsOf(ofOpenTofu)]);
    },
  };
}

/** The key of a provider block in a plan: `gatehouse`, or `gatehouse.alias`. */
function providerKey({ labels: [, name], values }: Block): string {
  const alias = values.get("alias");
  return alias === undefined ? `${name}` : `${name}.${String(alias).replaceAll('"', "")}`;
}

/** The names of files that only OpenTofu reads. */
const TOFU = /\.tofu(?:\.json)?$/;

/** The names of files whose blocks change the blocks of other files. */
const OVERRIDE = /(?:^|_)override\.(?:tf|tofu)(?:\.json)?$/;

/**
 * Returns the lists of `ignore_changes` that apply to a resource with these declarations. A list in an override file
 * replaces the lists of other files. A block without a list has an empty list, unless the block is in an override file.
 * The result is empty if only override files declare the resource, since such a configuration is invalid.
 */
function listsOf(declarations: RootModule["blocks"]): (readonly string[])[] {
  const others = declarations.filter(({ file }) => !OVERRIDE.test(file));
  if (others.length === 0) return [];
  const overrides = declarations.filter(({ file }) => OVERRIDE.test(file));
  const replacing = overrides.flatMap((block) => {
    const paths = ignoredIn(block);
    return paths === undefined ? [] : [paths];
  });
  return replacing.length > 0 ? replacing : others.map((block) => ignoredIn(block) ?? []);
}

/** Returns the list in the block `lifecycle` of a resource; undefined without such a list. */
function ignoredIn({ blocks }: Block): string[] | undefined {
  const lifecycle = blocks.find(({ labels }) => labels.join() === "lifecycle");
  const list = lifecycle?.values.get("ignore_changes");
  if (list === undefined) return undefined;
  const items = Array.isArray(list)
    ? list
    : String(list)
        .replace(/^\[(.*)\]$/s, "$1")
        .split(",");
  const paths = items.map((path) => String(path).trim().replaceAll('"', ""));
  return paths.filter((path) => path !== "");
}

/** Returns the paths that all lists contain. */
const inAll = ([first = [], ...others]: readonly (readonly string[])[]): string[] =>
  first.filter((path) => others.every((paths) => paths.includes(path)));
