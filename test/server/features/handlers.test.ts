import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { internalOperations, operations } from "../../../sdk/contract/index.ts";
import { handlers } from "../../../server/features/handlers.ts";

const FILE = new URL("../../../server/features/handlers.ts", import.meta.url);

/** Returns the ids of the operations whose handlers `handlers.ts` imports, once for each import. */
async function importedIds(): Promise<string[]> {
  const imports = readFileSync(FILE, "utf8").matchAll(
    /^import (?:\* as \w+|\{ ([^}]*) \}) from "(\.[^"]+)";$/gm,
  );
  const names: string[] = [];
  for (const [, list, specifier = ""] of imports) {
    const module: Record<string, unknown> = await import(new URL(specifier, FILE).href);
    if (list === undefined) names.push(...Object.keys(module));
    for (const name of list?.split(", ") ?? []) {
      const value = module[name];
      names.push(...(typeof value === "function" ? [name] : Object.keys(value as object)));
    }
  }
  return names.filter((name) => name in operations || name in internalOperations);
}

test("the handler of each operation has one source", async () => {
  const ids = await importedIds();
  expect(ids.filter((id, place) => ids.indexOf(id) < place)).toEqual([]);
  const handled = Object.keys(handlers).filter((id) => id in operations || id in internalOperations);
  expect(ids.toSorted()).toEqual(handled.sort());
});
