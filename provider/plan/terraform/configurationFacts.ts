import { type Block, type RootModule, readRootModule } from "./rootModule.ts";

/** Facts about a root module that are in its files, but not in a plan. */
export interface ConfigurationFacts {
  /**
   * Returns true if each provider block with this key sets a setting to exactly this variable. The JSON of a plan does
   * not distinguish `var.url` from `"${var.url}/other"`.
   * @param key the key of the block in a plan: `gatehouse`, or `gatehouse.alias`
   */
  readonly isSettingAlone: (key: string, setting: string, variable: string) => boolean;
  /**
   * Returns true if a plan contains the actual value of this variable: the value with which Terraform created the plan.
   * This requires that the root module declares the variable and that the variable is not ephemeral. For an ephemeral
   * variable, the JSON of a plan contains the default value, even if the actual value is different.
   */
  readonly isInPlan: (variable: string) => boolean;
  /**
   * Returns the attribute paths that a resource lists in `ignore_changes`. The path `all` stands for all attributes.
   * The address of the resource omits the keys of `count` and `for_each`. If several blocks declare the resource,
   * returns only the paths that all blocks contain. A plan does not show whether Terraform or OpenTofu created it, so
   * returns only the paths that both CLIs would ignore. Returns an empty list for a resource of a child module, because
   * the files of child modules are not read.
   * @default none
   */
  readonly ignoredChanges?: (address: string) => readonly string[];
}

/**
 * Returns the facts about a root module.
 * @param folder folder of the root module. The files are read when a function of the result is first called.
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
      // In a JSON file, the variable is inside a template.
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

/** Returns the key of a provider block in a plan: `gatehouse`, or `gatehouse.alias`. */
function providerKey({ labels: [, name], values }: Block): string {
  const alias = values.get("alias");
  return alias === undefined ? `${name}` : `${name}.${String(alias).replaceAll('"', "")}`;
}

/** The names of files that only OpenTofu reads. */
const TOFU = /\.tofu(?:\.json)?$/;

/** The names of override files, whose blocks change the blocks in other files. */
const OVERRIDE = /(?:^|_)override\.(?:tf|tofu)(?:\.json)?$/;

/**
 * Returns the lists of `ignore_changes` that apply to a resource. A list in an override file replaces the lists in
 * other files. If no override file contains a list, returns the list of each block, which is empty for a block without
 * `ignore_changes`. Returns no lists if only override files declare the resource, since the configuration is then
 * invalid.
 * @param declarations the blocks of the resource
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

/**
 * Returns the list `ignore_changes` in the `lifecycle` block of a resource. Returns undefined if the resource has no
 * such list.
 */
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
