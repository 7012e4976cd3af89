import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { configurationFacts } from "../../provider/plan/terraform/configurationFacts.ts";
import { testFolder } from "../support/folder.ts";

const block = (list?: string) => {
  const lifecycle = list === undefined ? "" : `  lifecycle {\n    ignore_changes = ${list}\n  }\n`;
  return `resource "gatehouse_public_key" "ana" {\n  username = "^ana$"\n${lifecycle}}\n`;
};

const json = (lifecycle?: object) =>
  JSON.stringify({ resource: { gatehouse_public_key: { ana: { username: "^ana$", lifecycle } } } });

/** Returns the ignored paths of the key `ana` in a folder with these files. */
function ignored(files: Readonly<Record<string, string>>): readonly string[] {
  const folder = testFolder();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return configurationFacts(folder).ignoredChanges("gatehouse_public_key.ana");
}

describe("the ignored changes of a resource", () => {
  it.each<[string, Readonly<Record<string, string>>]>([
    ["a block of Terraform", { "main.tf": block("[username]") }],
    ["a block of OpenTofu", { "main.tofu": block("[username]") }],
    ["a block in JSON", { "main.tf.json": json({ ignore_changes: ["username"] }) }],
    ["all blocks", { "main.tf": block("[username, name]"), "main.tofu": block("[username]") }],
    ["an override", { "main.tf": block(), "override.tf": block("[username]") }],
    [
      "an override that replaces the list",
      { "main.tf": block("all"), "a_override.tf.json": json({ ignore_changes: ["username"] }) },
    ],
    ["a block with an override without a list", { "main.tf": block("[username]"), "override.tf": block() }],
    [
      "a block with an override of OpenTofu without a list",
      { "main.tf": block("[username]"), "a_override.tofu.json": json() },
    ],
  ])("come from %s", (_source, files) => {
    expect(ignored(files)).toEqual(["username"]);
  });

  it.each<[string, Readonly<Record<string, string>>]>([
    ["another file of OpenTofu", { "main.tf": block(), "x.tofu": block("all") }],
    ["another file, if the first one has an empty list", { "main.tf": block("[]"), "x.tofu": block("all") }],
    ["a file that OpenTofu does not read", { "main.tf": block("all"), "main.tofu": block() }],
    [
      "a file in JSON, if the block in HCL has no list",
      { "main.tf": block(), "x.tf.json": json({ ignore_changes: ["all"] }) },
    ],
    ["a file in HCL, if the block in JSON has no list", { "main.tf.json": json(), "x.tofu": block("all") }],
    ["an override that only OpenTofu reads", { "main.tf": block(), "override.tofu": block("all") }],
    [
      "an override that OpenTofu does not read",
      { "main.tf": block(), "override.tf": block("all"), "override.tofu": "" },
    ],
    ["an override without a block to change", { "override.tf": block("all") }],
    ["a file whose name is similar to an override", { "main.tf": block(), "nooverride.tf": block("all") }],
  ])("do not come from %s", (_source, files) => {
    expect(ignored(files)).toEqual([]);
  });
});
