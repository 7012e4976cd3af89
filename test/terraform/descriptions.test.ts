import { describe, expect, test } from "vitest";
import { TerraformProvider } from "../../provider/providers/terraform/terraformProvider.ts";

interface Attribute {
  readonly name: string;
  readonly description?: string;
  readonly nestedType?: { readonly attributes: readonly Attribute[] };
}

interface Block {
  readonly block: { readonly description?: string; readonly attributes: readonly Attribute[] };
}

interface Called {
  readonly summary?: string;
  readonly description?: string;
  readonly parameters?: readonly Attribute[];
  readonly variadicParameter?: Attribute;
}

interface Served {
  readonly provider: Block;
  readonly resourceSchemas: Readonly<Record<string, Block>>;
  readonly dataSourceSchemas: Readonly<Record<string, Block>>;
  readonly ephemeralResourceSchemas: Readonly<Record<string, Block>>;
  readonly functions: Readonly<Record<string, Called>>;
}

type Description = readonly [path: string, text: string | undefined];

const ofAttribute = (path: string, { name, description, nestedType }: Attribute): Description[] => [
  [`${path}.${name}`, description],
  ...(nestedType?.attributes ?? []).flatMap((attribute) => ofAttribute(`${path}.${name}`, attribute)),
];

const ofBlock = (path: string, { block }: Block): Description[] => [
  [path, block.description],
  ...block.attributes.flatMap((attribute) => ofAttribute(path, attribute)),
];

const ofFunction = (path: string, called: Called): Description[] => [
  [path, called.description],
  [`${path} (summary)`, called.summary],
  ...[...(called.parameters ?? []), called.variadicParameter]
    .filter((parameter) => parameter !== undefined)
    .flatMap((parameter) => ofAttribute(path, parameter)),
];

const served = new TerraformProvider({}).methods().GetProviderSchema() as unknown as Served;

const all = <T>(
  kind: string,
  schemas: Readonly<Record<string, T>>,
  of: (path: string, schema: T) => Description[],
) => Object.entries(schemas).flatMap(([name, schema]) => of(`${kind} ${name}`, schema));

describe("the schema that the Terraform provider serves", () => {
  test.each<[string, Description[]]>([
    ["the provider", ofBlock("provider", served.provider)],
    ["resources", all("resource", served.resourceSchemas, ofBlock)],
    ["data sources", all("data source", served.dataSourceSchemas, ofBlock)],
    ["ephemeral resources", all("ephemeral resource", served.ephemeralResourceSchemas, ofBlock)],
    ["functions", all("function", served.functions, ofFunction)],
  ])("describes every attribute of %s", (_, descriptions) => {
    expect(descriptions.length).toBeGreaterThan(2);
    expect(descriptions.filter(([, text]) => !text?.trim()).map(([path]) => path)).toEqual([]);
  });
});
