import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { isUrlAlone } from "../../provider/plan/terraform/providerUrls.ts";
import { testFolder } from "../support/folder.ts";

/** Whether the block `gatehouse` of these files gives its url by `var.url` alone. */
function isAlone(files: Readonly<Record<string, string>> | string, key = "gatehouse"): boolean {
  const folder = testFolder();
  const named = typeof files === "string" ? { "main.tf": files } : files;
  for (const [name, text] of Object.entries(named)) writeFileSync(join(folder, name), text);
  return isUrlAlone(folder, key, "url");
}

const ALONE = 'provider "gatehouse" {\n  url = var.url\n}\n';
const OTHER = `"\${var.url}/other"`;
const NOT_ALONE = `provider "gatehouse" {\n  url = ${OTHER}\n}\n`;
const QUOTES = `locals {\n  a = "}\\" \${ { "b" = "\${"}"}" }["b"] } $\${"\n}\n`;
const HEREDOC = `locals {\n  a = <<-END\n    ${NOT_ALONE}   \${ { "}" = "END" }["}"] } END\n  END\n}\n`;

describe("the url of a provider block", () => {
  it.each([
    ["on a line", ALONE],
    ["in a block on one line", 'provider "gatehouse" { url = var.url }'],
    ["with a name without quotes", "provider gatehouse {\n  url=var.url // here\n}"],
    ["with Windows line ends", ALONE.replaceAll("\n", "\r\n")],
    ["before a comment", 'provider "gatehouse" {\n  url = var.url /* a\n comment */ # and another\n}'],
    [
      "beside comments with another url",
      `# ${NOT_ALONE.replaceAll("\n", " ")}\n/*\n${NOT_ALONE}*/\n${ALONE}`,
    ],
    ["behind quotes and templates", `${QUOTES}${ALONE}`],
    ["behind a heredoc with another url", `${HEREDOC}${ALONE}`],
    [
      "beside urls of other blocks",
      `${ALONE}provider "other" {\n  url = local.a\n}\ndata "http" "a" {\n  url = local.a\n}\n`,
    ],
    [
      "beside a url in an object",
      'provider "gatehouse" {\n  url = var.url\n  a = {\n    url = "b"\n  }\n}\n',
    ],
  ])("is alone %s", (_where, text) => {
    expect(isAlone(text)).toBe(true);
  });

  it.each([
    ["in a template", NOT_ALONE],
    ["in brackets", 'provider "gatehouse" {\n  url = (var.url)\n}'],
    ["in a call", 'provider "gatehouse" {\n  url = trim(\n    var.url, "/")\n}'],
    ["in a heredoc", `provider "gatehouse" {\n  url = <<END\n\${var.url}/other\nEND\n}`],
    ["with an index", 'provider "gatehouse" {\n  url = var.url["a"]\n}'],
    ["of another variable", 'provider "gatehouse" {\n  url = var.url2\n}'],
    ["in a comment", `# provider "gatehouse" { url = var.url }\n/*\n${ALONE}*/`],
    ["in a heredoc elsewhere", `locals {\n  a = <<END\n${ALONE}END\n}\n`],
    ["in a text elsewhere", `locals {\n  a = "\${"provider \\"gatehouse\\" { url = var.url }"}"\n}`],
    ["in a block of another kind", 'resource "gatehouse" {\n  url = var.url\n}'],
    ["in a block within another one", `module "a" {\n${ALONE}}`],
    ["without a block", ""],
  ])("is not alone %s", (_where, text) => {
    expect(isAlone(text)).toBe(false);
  });

  it("is that of the block with the alias", () => {
    const second = `provider "gatehouse" {\n  alias = "second"\n  url   = ${OTHER}\n}\n`;
    expect(isAlone(ALONE + second)).toBe(true);
    expect(isAlone(ALONE + second, "gatehouse.second")).toBe(false);
    const both = NOT_ALONE + second.replace(OTHER, "var.url");
    expect(isAlone(both, "gatehouse.second")).toBe(true);
  });

  it("is read from the files of OpenTofu too, and from all files that give one", () => {
    expect(isAlone({ "main.tofu": ALONE })).toBe(true);
    expect(isAlone({ "main.tf": ALONE, "main.tofu": NOT_ALONE })).toBe(false);
    expect(isAlone({ "main.tf": NOT_ALONE, "main.tofu": ALONE })).toBe(false);
    expect(isAlone({ "main.tf": ALONE, "main_override.tf": NOT_ALONE })).toBe(false);
    expect(isAlone({ "main.tf": ALONE, ".main.tf": NOT_ALONE, "main.tf.bak": NOT_ALONE })).toBe(true);
  });

  it("is an error where there is no such folder", () => {
    const folder = join(testFolder(), "none");
    expect(() => isUrlAlone(folder, "gatehouse", "url")).toThrow(
      expect.objectContaining({
        code: "plan_file",
        message: `Cannot read the configuration: ${folder} (ENOENT)`,
      }),
    );
  });
});
