/** Names of one package. */
interface Imported {
  readonly from: string;
}

/** The imports of classes and helpers, which may come from one package. */
export function importsOf(
  { classes, from }: Imported & { readonly classes: readonly string[] },
  { helpers, from: helpersFrom }: Imported & { readonly helpers: readonly string[] },
): string[] {
  if (from === helpersFrom) return [importText(from, [...classes, ...helpers])];
  return [importText(helpersFrom, helpers), importText(from, classes)].filter((text) => text !== "");
}

const nameIn = (specifier: string) => specifier.replace("type ", "");

/** One import; nothing where it has no names. */
export function importText(from: string, names: readonly string[]): string {
  const sorted = names.toSorted((left, right) => nameIn(left).localeCompare(nameIn(right), "en"));
  return sorted.length === 0 ? "" : `import { ${sorted.join(", ")} } from "${from}";`;
}
