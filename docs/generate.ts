// `npm run docs`: writes the reference from the definitions, and the JSON Schemas of the commands' output.
import { mkdirSync, writeFileSync } from "node:fs";
import { pages, schemaFiles } from "./pages.ts";

for (const [name, text] of Object.entries(pages())) {
  const file = new URL(name, import.meta.url);
  mkdirSync(new URL(".", file), { recursive: true });
  writeFileSync(file, text);
}
mkdirSync(new URL("../provider/schemas/", import.meta.url), { recursive: true });
for (const [name, text] of Object.entries(schemaFiles())) {
  writeFileSync(new URL(`../provider/schemas/${name}`, import.meta.url), text);
}
