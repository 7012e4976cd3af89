// `npm run docs`: writes the reference from the definitions.
import { writeFileSync } from "node:fs";
import { pages } from "./pages.ts";

for (const [name, text] of Object.entries(pages())) {
  writeFileSync(new URL(name, import.meta.url), text);
}
