import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { configurationFacts } from "../../provider/plan/terraform/configurationFacts.ts";
import { readTerraformPlan } from "../../provider/plan/terraform/readTerraformPlan.ts";
import { SOURCE } from "../../provider/terraform/source.ts";
import { workspaceIn } from "../../provider/terraform/workspace.ts";
import { testFolder } from "../support/folder.ts";

type Files = Readonly<Record<string, string>> | string;

/** Creates a folder with these files. If `files` is a text, the folder has only `main.tf` with this content. */
function folderOf(files: Files): string {
  const folder = testFolder();
  const named = typeof files === "string" ? { "main.tf": files } : files;
  for (const [name, text] of Object.entries(named)) writeFileSync(join(folder, name), text);
  return folder;
}

/** True if the provider block `gatehouse` in these files sets its url to exactly `var.url`. */
const isAlone = (files: Files, key = "gatehouse"): boolean =>
  configurationFacts(folderOf(files)).isSettingAlone(key, "url", "url");

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
  ])("is a plain variable %s", (_where, text) => {
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
  ])("is not a plain variable %s", (_where, text) => {
    expect(isAlone(text)).toBe(false);
  });

  it("belongs to the block with the alias", () => {
    const second = `provider "gatehouse" {\n  alias = "second"\n  url   = ${OTHER}\n}\n`;
    expect(isAlone(ALONE + second)).toBe(true);
    expect(isAlone(ALONE + second, "gatehouse.second")).toBe(false);
    const both = NOT_ALONE + second.replace(OTHER, "var.url");
    expect(isAlone(both, "gatehouse.second")).toBe(true);
  });

  it("has names with letters of any script", () => {
    const text = `provider "größe" {\n  alias = "东"\n  url = var.größe\n}\nvariable "größe" {}\n`;
    const facts = configurationFacts(folderOf(text));
    expect(facts.isSettingAlone("größe.东", "url", "größe")).toBe(true);
    expect(facts.isSettingAlone("gr", "url", "größe")).toBe(false);
    expect(facts.isInPlan("größe")).toBe(true);
    expect(facts.isInPlan("gr")).toBe(false);
  });

  it("is read from all files that set it, including files of OpenTofu", () => {
    expect(isAlone({ "main.tofu": ALONE })).toBe(true);
    expect(isAlone({ "main.tf": ALONE, "main.tofu": NOT_ALONE })).toBe(false);
    expect(isAlone({ "main.tf": NOT_ALONE, "main.tofu": ALONE })).toBe(false);
    expect(isAlone({ "main.tf": ALONE, "main_override.tf": NOT_ALONE })).toBe(false);
    expect(isAlone({ "main.tf": ALONE, ".main.tf": NOT_ALONE, "main.tf.bak": NOT_ALONE })).toBe(true);
  });

  it("is an error if the folder does not exist", () => {
    const folder = join(testFolder(), "none");
    expect(() => configurationFacts(folder).isSettingAlone("gatehouse", "url", "url")).toThrow(
      expect.objectContaining({
        code: "plan_file",
        message: `Cannot read ${folder}: it does not exist. Correct the path.`,
      }),
    );
  });
});

describe("the value of a variable", () => {
  const isKnown = (files: Files) => configurationFacts(folderOf(files)).isInPlan("url");
  const json = (body: unknown, name = "url") => JSON.stringify({ variable: { [name]: body } });

  it.each<[string, Files]>([
    ["without arguments", 'variable "url" {}'],
    ["on several lines", 'variable "url" {\n  type = object({\n    ephemeral = bool\n  })\n}\n'],
    ["that is not ephemeral", 'variable "url" {\n  ephemeral = false\n}'],
    ["beside an ephemeral one", 'variable "url" {}\nvariable "token" {\n  ephemeral = true\n}'],
    ["in JSON", { "main.tf.json": json({ default: "x" }) }],
    ["in a list in JSON", { "main.tofu.json": JSON.stringify([{ variable: [{ url: [{}] }] }]) }],
    ["in JSON that is not ephemeral", { "main.tf.json": json({ ephemeral: false }) }],
  ])("is in the plan for a declaration %s", (_where, files) => {
    expect(isKnown(files)).toBe(true);
  });

  it.each<[string, Files]>([
    ["that is ephemeral", 'variable "url" {\n  default = "x"\n  ephemeral = true # not kept\n}'],
    ["that is ephemeral, on one line", "variable url { ephemeral = true }"],
    ["with an expression", 'variable "url" {\n  ephemeral = (true)\n}'],
    [
      "after a nested block",
      'variable "url" {\n  validation {\n    condition = true\n  }\n  ephemeral = true\n}',
    ],
    [
      "with another value in an override file",
      { "main.tf": 'variable "url" {}', "main_override.tf": 'variable "url" {\n  ephemeral = true\n}' },
    ],
    ["that is ephemeral, in JSON", { "main.tf.json": json({ ephemeral: true }) }],
    ["with an expression in JSON", { "main.tf.json": json({ ephemeral: "true" }) }],
    [
      "in a list in JSON",
      { "main.tofu.json": JSON.stringify([{ variable: [{ url: [{ ephemeral: true }] }] }]) },
    ],
    ["of another variable", { "main.tf": 'variable "url2" {}', "a.tf.json": json({}, "constructor") }],
    ["in a comment", '# variable "url" {}'],
    ["in a file that is not JSON", { "main.tf.json": "{" }],
    ["that is missing", ""],
  ])("is not in the plan for a declaration %s", (_where, files) => {
    expect(isKnown(files)).toBe(false);
  });
});

describe("a provider block of a plan", () => {
  const URL = "https://access.example.org";
  const TENANT = "00000000-0000-4000-8000-000000000000";
  const facts = {
    isSettingAlone: (_key: string, setting: string): boolean => setting === "url",
    isInPlan: () => true,
  };

  /** Returns the known settings of the provider in a plan with one resource. */
  function read(
    expressions: Readonly<Record<string, unknown>>,
    variables: Readonly<Record<string, unknown>>,
    how: Partial<typeof facts> & {
      readonly isOfModule?: true;
      readonly isProjectNamed?: boolean;
    } = {},
  ) {
    const { isOfModule, ...more } = how;
    const key = isOfModule ? "module.inner:gatehouse" : "gatehouse";
    const resource = { address: "gatehouse_tag.a", type: "gatehouse_tag", provider_config_key: key };
    const resources = [{ ...resource, expressions: { tenant: { constant_value: TENANT } } }];
    const plan = {
      format_version: "1.2",
      planned_values: {},
      variables: Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, { value }])),
      resource_changes: [
        {
          address: `${isOfModule ? "module.inner." : ""}gatehouse_tag.a`,
          type: "gatehouse_tag",
          provider_name: `registry.terraform.io/${SOURCE}`,
          change: { actions: ["create"], after: { name: "web", tenant: TENANT } },
        },
      ],
      configuration: {
        provider_config: { [key]: { full_name: `registry.terraform.io/${SOURCE}`, expressions } },
        root_module: isOfModule ? { module_calls: { inner: { module: { resources } } } } : { resources },
      },
    };
    const origin = { name: "a plan", workspace: workspaceIn(testFolder(), {}), ...facts, ...more };
    const { settings, notEvaluated, ...read } = readTerraformPlan(JSON.stringify(plan), origin);
    planned = read;
    return { settings: Object.fromEntries(settings), notEvaluated };
  }
  let planned: Pick<ReturnType<typeof readTerraformPlan>, "plan" | "isProjectNamed"> | undefined;
  const variable = (name: string) => ({ references: [`var.${name}`] });
  const unknown = { settings: {}, notEvaluated: [expect.stringContaining("url is unknown in the plan")] };

  it("has a known url if the configuration sets it to a variable", () => {
    const known = { settings: { "gatehouse:url": URL }, notEvaluated: [] };
    expect(read({ url: { constant_value: URL } }, {})).toEqual(known);
    expect(read({ url: variable("url") }, { url: URL })).toEqual(known);
    expect(read({ url: variable("größe") }, { größe: URL })).toEqual(known);
    // Plans have this form if the configuration is written in JSON.
    expect(read({ url: { constant_value: `\${var.url}` } }, {})).toEqual(unknown);
    expect(read({ url: { constant_value: `\${var.url}`, ...variable("url") } }, { url: URL })).toEqual(known);
  });

  it("has no url if the configuration does not set it, or sets it to a variable with the value null", () => {
    expect(read({}, {})).toEqual({ settings: {}, notEvaluated: [] });
    expect(read({ url: variable("url") }, { url: null })).toEqual({ settings: {}, notEvaluated: [] });
  });

  it("names the project of the plan, unless its value is unknown in the plan", () => {
    const known = { settings: { "gatehouse:project": "access" }, notEvaluated: [] };
    expect(read({ project: { constant_value: "access" } }, {})).toEqual(known);
    expect(planned).toMatchObject({ isProjectNamed: true, plan: { project: "access", stack: "default" } });
    const isAlone = { isSettingAlone: (_key: string, setting: string): boolean => setting === "project" };
    expect(read({ project: variable("name") }, { name: "access" }, isAlone)).toEqual(known);
    expect(read({ project: variable("name") }, { name: "access" })).toEqual({
      settings: {},
      notEvaluated: [expect.stringContaining("project is unknown in the plan")],
    });
    expect(planned).toMatchObject({ isProjectNamed: false });
    read({}, {});
    expect(planned).toMatchObject({ isProjectNamed: false });
    read({}, {}, { isProjectNamed: true });
    expect(planned).toMatchObject({ isProjectNamed: true });
  });

  it.each<[string, ...Parameters<typeof read>]>([
    ["a variable without a value in the plan", { url: variable("url") }, {}],
    ["a variable of another name", { url: variable("url") }, { other: URL }],
    ["a variable and more", { url: variable("url") }, { url: URL }, { isSettingAlone: () => false }],
    ["an ephemeral variable", { url: variable("url") }, { url: URL }, { isInPlan: () => false }],
    [
      "an ephemeral variable in JSON",
      { url: { constant_value: `\${var.url}`, ...variable("url") } },
      { url: URL },
      { isInPlan: () => false },
    ],
    [
      "a variable and more in JSON",
      { url: { constant_value: `\${var.url}/`, ...variable("url") } },
      { url: URL },
    ],
    ["two variables", { url: { references: ["var.url", "var.path"] } }, { url: URL, path: "/" }],
    ["a member of a variable", { url: { references: ["var.url.a", "var.url"] } }, { url: URL }],
    ["a local value", { url: { references: ["local.url"] } }, { url: URL }],
    ["an expression without references", { url: {} }, { url: URL }],
    [
      "a module's variable of the same name as one of the root module",
      { url: variable("url") },
      { url: URL },
      { isOfModule: true },
    ],
    [
      "a module's variable in JSON",
      { url: { constant_value: `\${var.url}`, ...variable("url") } },
      { url: URL },
      { isOfModule: true },
    ],
  ])("does not have the url of %s", (_what, ...plan) => {
    expect(read(...plan)).toEqual(unknown);
  });
});
