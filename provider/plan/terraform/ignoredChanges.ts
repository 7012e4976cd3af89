import { blocksOf, configurationFiles, HCL, JSON_FILES, membersIn, memberValues } from "./providerUrls.ts";

/**
 * Reads `ignore_changes` of the resources of a root module, which the JSON of a plan does not contain. The result
 * returns the attribute paths of a resource, and `all` for all attributes. It is empty for a resource of a child module,
 * whose files are not read. If several files declare the resource, only the paths in all of them count.
 * @param folder folder of the root module; read at the first call of the result
 * @throws EngineError (`plan_file`) from the result, if the folder or a file cannot be read
 */
export function ignoredChangesIn(folder: string): (address: string) => string[] {
  let lists: ReadonlyMap<string, readonly IgnoreList[]> | undefined;
  return (address) => {
    lists ??= Map.groupBy(readLists(folder), (list) => list.address);
    const [first, ...others] = lists.get(address) ?? [];
    return first?.paths.filter((path) => others.every(({ paths }) => paths.includes(path))) ?? [];
  };
}

interface IgnoreList {
  /** The address of the resource, without keys. */
  readonly address: string;
  readonly paths: readonly string[];
}

const readLists = (folder: string): IgnoreList[] => [
  ...configurationFiles(folder, HCL)
    .flatMap(blocksOf)
    .flatMap(({ head, body }) => {
      const address = resourceAddress(head);
      return address === undefined ? [] : ignoredIn(body).map((paths) => ({ address, paths }));
    }),
  ...configurationFiles(folder, JSON_FILES).flatMap(listsInJson),
];

/** The address of the resource that a block declares; undefined for a block of another type. */
function resourceAddress(head: string): string | undefined {
  const [block, type, name, ...more] = head.replaceAll('"', " ").split(/\s+/);
  return block === "resource" && name !== undefined && more.join("") === "" ? `${type}.${name}` : undefined;
}

/** Returns the list in the block `lifecycle` of a resource, as the only item; an empty list without such a list. */
function ignoredIn(body: string): string[][] {
  const lifecycle = withoutBlocks(enclosed(body, /\blifecycle\s*\{/) ?? "");
  if (/\bignore_changes\s*=\s*all\b/.test(lifecycle)) return [["all"]];
  const list = enclosed(lifecycle, /\bignore_changes\s*=\s*\[/);
  if (list === undefined) return [];
  const paths = list.split(",").map((path) => path.trim().replaceAll('"', ""));
  return [paths.filter((path) => path !== "")];
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

function listsInJson(text: string): IgnoreList[] {
  const entries = (values: readonly unknown[]) => values.flatMap((value) => Object.entries(value ?? {}));
  return entries(membersIn(text, "resource")).flatMap(([type, named]) =>
    entries([named].flat()).flatMap(([name, declarations]) =>
      lifecyclesOf(declarations).map((paths) => ({ address: `${type}.${name}`, paths })),
    ),
  );
}

/** Returns the list of each declaration of a resource that has one. */
const lifecyclesOf = (declarations: unknown): string[][] =>
  memberValues([declarations].flat(), "lifecycle").flatMap((lifecycle) => {
    if (typeof lifecycle !== "object" || lifecycle === null || !("ignore_changes" in lifecycle)) return [];
    return [[lifecycle.ignore_changes].flat().filter((path) => typeof path === "string")];
  });
