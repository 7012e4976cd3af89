// `npm run docs`: generates the reference pages from the definitions, the JSON Schemas of command output, and the list
// of error sentences that the masking of secrets leaves unchanged.
import { mkdirSync, writeFileSync } from "node:fs";
import { pages, schemaFiles } from "./pages.ts";
import { requestSentences, SENTENCES_FILE } from "./requestSentences.ts";

for (const [name, text] of Object.entries(await pages())) {
  const file = new URL(`../${name}`, import.meta.url);
  mkdirSync(new URL(".", file), { recursive: true });
  writeFileSync(file, text);
}
writeFileSync(new URL(SENTENCES_FILE, import.meta.url), requestSentences());
mkdirSync(new URL("../../provider/schemas/", import.meta.url), { recursive: true });
for (const [name, text] of Object.entries(schemaFiles())) {
  writeFileSync(new URL(`../../provider/schemas/${name}`, import.meta.url), text);
}
