import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { DEFAULT_RETRY } from "../../sdk/index.ts";
import { DEFAULTS } from "../../sdk/transport.ts";

/** Returns the `@default` values in a source file that are numbers or texts, by field name. */
function documented(file: string): Record<string, unknown> {
  const source = readFileSync(new URL(`../../sdk/${file}`, import.meta.url), "utf8");
  const found = source.matchAll(/@default (["\d].*?)\s*\*\/\n\s*readonly (\w+)\??:/g);
  return Object.fromEntries([...found].map(([, value = "", name = ""]) => [name, JSON.parse(value)]));
}

test("documents the defaults of the options", () => {
  expect(documented("clientTypes.ts")).toEqual(DEFAULTS);
  expect(documented("retry.ts")).toEqual(DEFAULT_RETRY);
});
