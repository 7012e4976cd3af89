import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { loadSsh2 } from "@gatehouse-access/sdk/ssh2";
import { expect, it } from "vitest";
import { testFolder } from "../support/folder.ts";

it.each([
  ["with a different text", { "index.js": "require('./server.js');", "server.js": "// nothing to fix" }],
  ["without one of the files", { "index.js": "" }],
])("rejects a version of the library %s", (_difference, files) => {
  const folder = testFolder();
  const library = join(folder, "node_modules", "ssh2", "lib");
  mkdirSync(library, { recursive: true });
  writeFileSync(join(library, "..", "package.json"), '{ "main": "lib/index.js" }');
  for (const [name, text] of Object.entries(files)) writeFileSync(join(library, name), text);
  const importer = pathToFileURL(join(folder, "importer.js")).href;
  expect(() => loadSsh2(importer)).toThrow(/this version of ssh2 lacks/);
});
