// Writes the Pulumi classes from the resource definitions. The build runs this script before the compiler.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { definitions } from "../../resources/index.ts";
import { classSource } from "./classSource.ts";
import { exampleOf } from "./exampleOf.ts";

const folder = new URL("../dynamic/generated/", import.meta.url);
const file = new URL("resources.ts", folder);
const text = classSource(definitions, exampleOf);

mkdirSync(folder, { recursive: true });
let existing = "";
try {
  existing = readFileSync(file, "utf8");
} catch (error) {
  if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
}
// An unchanged file keeps its modification time, so that the next build skips it.
if (existing !== text) writeFileSync(file, text);
