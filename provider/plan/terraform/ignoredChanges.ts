import {
  blocksOf,
  type ConfigurationFile,
  configurationFiles,
  HCL,
  JSON_FILES,
  membersIn,
  memberValues,
} from "./providerUrls.ts";

/**
 * Reads `ignore_changes` of the resources of a root module, which the JSON of a plan does not contain. The result
 * returns the attribute paths of a resource, and `all` for all attributes. It is empty for a resource of a child module,
 * whose files are not read. If several blocks declare the resource, only the paths in all of them count. A plan does not
 * show whether Terraform or OpenTofu created it, so only the paths count that both of them would ignore.
 * @param folder folder of the root module; read at the first call of the result
 * @throws EngineError (`plan_file`) from the result, if the folder or a file cannot be read
 */
export function ignoredChangesIn(folder: string): (address: string) => string[] {
  let read: RootModule | undefined;
  return (address) => {
    read ??= readModule(folder);
    const { files, declarations } = read;
    const own = declarations.get(address) ?? [];
    const ofTerraform = own.filter(({ file }) => !TOFU.test(file));
    // OpenTofu ignores `main.tf` if the folder contains `main.tofu`.
    const ofOpenTofu = own.filter(
      ({ file }) => TOFU.test(file) || !files.has(file.replace(/\.tf(\.json)?$/, ".tofu$1")),
    );
    return inAll([...listsOf(ofTerraform), ...listsOf(ofOpenTofu)]);
  };
}

/** The files of a root module, and the resources in them. */
interface RootModule {
  /** The names of the configuration files. */
  readonly files: ReadonlySet<string>;
  /** The blocks that declare a resource, by the address of the resource. */
  readonly declarations: ReadonlyMap<string, readonly Declaration[]>;
}

/** The names of files that only OpenTofu reads. */
const TOFU = /\.tofu(?:\.json)?$/;

/** The names of files whose blocks change the blocks of other files. */
const OVERRIDE = /(?:^|_)override\.(?:tf|tofu)(?:\.json)?$/;

/** A block that declares a resource. */
interface Declaration {
  /** The address of the resource, without keys. */
  readonly address: string;
  /** The name of the file. */
  readonly file: string;
  /** The list of `ignore_changes`; undefined if the block has no list. */
  readonly paths: readonly string[] | undefined;
}

/**
 * Returns the lists that apply to a resource with these declarations. A list in an override file replaces the lists of
 * other files. A block without a list has an empty list, unless the block is in an override file. The result is empty
 * if only override files declare the resource, since such a configuration is invalid.
 */
function listsOf(declarations: readonly Declaration[]): (readonly string[])[] {
  const others = declarations.filter(({ file }) => !OVERRIDE.test(file));
  if (others.length === 0) return [];
  const overrides = declarations.filter(({ file }) => OVERRIDE.test(file));
  const replacing = overrides.flatMap(({ paths }) => (paths === undefined ? [] : [paths]));
  return replacing.length > 0 ? replacing : others.map(({ paths = [] }) => paths);
}

/** Returns the paths that all lists contain. */
const inAll = ([first = [], ...others]: readonly (readonly string[])[]): string[] =>
  first.filter((path) => others.every((paths) => paths.includes(path)));

function readModule(folder: string): RootModule {
  const inHcl = configurationFiles(folder, HCL);
  const inJson = configurationFiles(folder, JSON_FILES);
  const declarations = [...inHcl.flatMap(declarationsInHcl), ...inJson.flatMap(declarationsInJson)];
  return {
    files: new Set([...inHcl, ...inJson].map(({ name }) => name)),
    declarations: Map.groupBy(declarations, ({ address }) => address),
  };
}

const declarationsInHcl = ({ name: file, text }: ConfigurationFile): Declaration[] =>
  blocksOf(text).flatMap(({ head, body }) => {
    const address = resourceAddress(head);
    return address === undefined ? [] : [{ address, file, paths: ignoredIn(body) }];
  });

/** The address of the resource that a block declares; undefined for a block of another type. */
function resourceAddress(head: string): string | undefined {
  const [block, type, name, ...more] = head.replaceAll('"', " ").split(/\s+/);
  return block === "resource" && name !== undefined && more.join("") === "" ? `${type}.${name}` : undefined;
}

/** Returns the list in the block `lifecycle` of a resource; undefined without such a list. */
function ignoredIn(body: string): string[] | undefined {
  const lifecycle = withoutBlocks(enclosed(body, /\blifecycle\s*\{/) ?? "");
  if (/\bignore_changes\s*=\s*all\b/.test(lifecycle)) return ["all"];
  const list = enclosed(lifecycle, /\bignore_changes\s*=\s*\[/);
  if (list === undefined) return undefined;
  const paths = list.split(",").map((path) => path.trim().replaceAll('"', ""));
  return paths.filter((path) => path !== "");
}

/**
 * Returns the code from the end of an opening to the bracket that closes it; undefined if the code has no such opening.
 * @param opening a pattern that ends with a bracket
 */
function enclosed(code: string, opening: RegExp): string | undefined {
  const match = opening.exec(code);
  if (!match) return undefined;
  const rest = code.slice(match.index + match[0].length);
  let depth = 1;
  for (const { 0: mark, index } of rest.matchAll(/[()[\]{}]/g)) {
    depth += "([{".includes(mark) ? 1 : -1;
    if (depth === 0) return rest.slice(0, index);
  }
  return rest;
}

/** Returns code without its nested blocks, such as `precondition`. */
function withoutBlocks(code: string): string {
  const rest = code.replaceAll(/\{[^{}]*\}/g, "");
  return rest === code ? code : withoutBlocks(rest);
}

function declarationsInJson({ name: file, text }: ConfigurationFile): Declaration[] {
  const entries = (values: readonly unknown[]) => values.flatMap((value) => Object.entries(value ?? {}));
  return entries(membersIn(text, "resource")).flatMap(([type, named]) =>
    entries([named].flat()).flatMap(([name, declarations]) =>
      [declarations].flat().map((declaration) => {
        const address = `${type}.${name}`;
        return { address, file, paths: ignoredInJson(declaration) };
      }),
    ),
  );
}

/** Returns the list in the member `lifecycle` of a resource; undefined without such a list. */
function ignoredInJson(declaration: unknown): string[] | undefined {
  const lists = memberValues([declaration], "lifecycle").flatMap((lifecycle) =>
    typeof lifecycle === "object" && lifecycle !== null && "ignore_changes" in lifecycle
      ? [[lifecycle.ignore_changes].flat().filter((path) => typeof path === "string")]
      : [],
  );
  return lists[0];
}
