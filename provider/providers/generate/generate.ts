// Generates the Pulumi classes and the lists of names from the modules of the kinds, and writes them to files. The
// build runs this script before the compiler.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { definitions, kindsWith } from "../../resources/index.ts";
import { classSource } from "./classSource.ts";
import { exampleOf } from "./exampleOf.ts";

/**
 * Writes a file if its content changes. An unchanged file keeps its modification time, so that the next build skips it.
 */
function write(path: string, text: string): void {
  const file = new URL(path, import.meta.url);
  mkdirSync(new URL(".", file), { recursive: true });
  let existing = "";
  try {
    existing = readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  if (existing !== text) writeFileSync(file, text);
}

const source = (...lines: readonly string[]): string => `${lines.join("\n")}\n`;

const names = definitions.map(({ name }) => name);
const imported = kindsWith("imported").map(({ definition }) => definition.name);

write("../dynamic/generated/resources.ts", classSource(definitions, exampleOf));
write(
  "../dynamic/generated/providers.ts",
  source(
    `import { providers } from ${JSON.stringify("../providers.ts")};`,
    "",
    "/** The dynamic provider of each resource type. */",
    `export const { ${names.join(", ")} } = providers;`,
  ),
);
write(
  "../../resources/generated/importedKinds.ts",
  source(
    "/** The kinds of objects that `import` declares. The help of the command needs only these names, not the pages. */",
    `export const IMPORTED_KINDS = ${JSON.stringify(imported)} as const;`,
  ),
);
