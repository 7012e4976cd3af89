import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, it } from "vitest";
import { addressOf } from "../../sdk/commandLine.ts";
import { testFolder } from "../support/folder.ts";

/** Writes a package.json file, and returns its address. */
function manifest(content: object) {
  const file = join(testFolder(), "package.json");
  writeFileSync(file, JSON.stringify(content));
  return pathToFileURL(file);
}

it.each([
  ["docs/guides/review.md", "https://docs.example.org/gatehouse/guides/review/"],
  ["docs/reference/terraform/index.md", "https://docs.example.org/gatehouse/reference/terraform/"],
])("the help links %s in the published documentation", (page, address) => {
  for (const homepage of ["https://docs.example.org/gatehouse", "https://docs.example.org/gatehouse/"])
    expect(addressOf(page, manifest({ homepage }))).toBe(address);
});

it("the help has the path of the page in the package if no documentation is published", () => {
  const folder = testFolder();
  writeFileSync(join(folder, "package.json"), "{}");
  expect(addressOf("docs/guides/review.md", pathToFileURL(join(folder, "package.json")))).toBe(
    join(folder, "docs/guides/review.md"),
  );
});
