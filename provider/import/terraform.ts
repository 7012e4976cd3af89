import { type Declarable, definitionNamed } from "../namespace/liveObjects.ts";
import { packageVersion } from "../packageFile.ts";
import { type Attribute, attributesOf } from "../terraform/attributes.ts";
import { SOURCE } from "../terraform/source.ts";
import { terraformName, toTerraform, typeNameOf } from "../terraform/types.ts";
import type { Values } from "../values.ts";
import {
  type Declaration,
  declarationOf,
  declarationsOf,
  type SharedValues,
  type Table,
  tableOf,
  withShared,
} from "./declarations.ts";
import { type Block, blockText, Code, FUNCTIONS, hclComment, helperCall } from "./literal.ts";
import {
  type KindOfProgram,
  type NamedObject,
  named,
  type ProgramFile,
  type ProgramOptions,
  uniqueNames,
  withNamespaceLast,
  withSubject,
} from "./model.ts";

const NOTES: Readonly<Record<string, readonly string[]>> = {
  ApiKey: [
    "The service never returns the secret of an API key, so this file does not contain key_wo. Set key_wo only for a",
    "change that creates a new key, such as another value of valid_days.",
  ],
};

interface Part {
  readonly file: ProgramFile;
  readonly imports: readonly Block[];
  readonly data?: ProgramFile;
}

/**
 * Returns the files of a Terraform root module: one file for each kind of object, data files for long lists, and import
 * blocks.
 */
export function terraformFiles(
  kinds: readonly KindOfProgram[],
  newKinds: readonly KindOfProgram[],
  options: ProgramOptions,
): ProgramFile[] {
  const accountIds = new Map<string, Code>();
  const added = newKinds.map((kind) => newResources(inTerraform(kind), kinds, accountIds));
  const texts = added.map(({ file }) => file.text);
  const own = withNamespaceLast(kinds, added.at(-1)?.addresses).map(inTerraform);
  const { declared, shared } = declarationsOf(own);
  const parts = own.map((kind) => {
    const declarations = declared.get(kind);
    return declarations ? declaredFile(kind, declarations, shared) : tableFiles(kind);
  });
  const files = [
    providerFile(options),
    importsFile(parts.flatMap(({ imports }) => imports)),
    ...(shared.size > 0 ? [sharedFile(shared)] : []),
    ...(added.length > 0 ? [{ path: "identity_mode.tf", text: texts.join("\n") }] : []),
    ...parts.flatMap(({ file, data }) => (data ? [file, data] : [file])),
  ];
  const hasTables = parts.some(({ data }) => data !== undefined);
  const hasCalls = files.some(({ path, text }) => path.endsWith(".tf") && text.includes(FUNCTIONS));
  return [versionsFile(hasCalls ? "1.8" : hasTables ? "1.7" : "1.5"), ...files];
}

/**
 * Declares the new objects of a kind.
 * @param kinds the kinds of the existing objects
 * @param accountIds see {@link withSubject}; the function adds the ids of new service accounts
 */
function newResources(kind: KindOfProgram, kinds: readonly KindOfProgram[], accountIds: Map<string, Code>) {
  const others = kinds.find((other) => other.kind === kind.kind);
  const taken = others ? [terraformName(others.file), ...labelsOf(others, others.objects, [])] : [];
  const declarations = kind.objects.map((object) => declarationOf(withSubject(object, accountIds)));
  const part = declaredFile(kind, declarations, new Map(), taken);
  for (const [index, { id }] of kind.objects.entries())
    accountIds.set(id, new Code(`${part.addresses[index]?.text}.account_id`));
  return part;
}

/**
 * Returns blocks that declare and import objects, to add to an existing configuration.
 * @param provider value of the argument `provider` in new resources; undefined to omit the argument
 */
export function terraformAdoptions(
  objects: readonly Declarable[],
  addresses: readonly string[],
  provider: string | undefined,
): string {
  const kinds = Map.groupBy(objects, ({ definition }) => definition.name);
  const given = provider === undefined ? {} : { provider: new Code(provider) };
  const texts = [...kinds].flatMap(([kind, some]) => {
    const own = inTerraform({ kind, file: kind, objects: named(some) });
    const head = `${typeOf(own)}.`;
    const taken = addresses.flatMap((address) =>
      address.startsWith(head) ? [address.slice(head.length).replace(/\[.*$/s, "")] : [],
    );
    // If the argument `provider` is set, patterns are literals. A function call contains the provider's local name, and
    // this configuration may use a local name other than `gatehouse`.
    const declarations = own.objects.map((object) =>
      provider === undefined ? declarationOf(object) : { ...object, args: object.inputs },
    );
    const whole = declarations.map((one) => ({ ...one, args: { ...given, ...one.args } }));
    const { file, imports } = declaredFile(own, whole, new Map(), taken);
    return [file.text.trimEnd(), ...imports.map(blockText)];
  });
  return texts.join("\n\n");
}

/**
 * Converts the input values of a kind's objects to Terraform values. The inputs keep the property names of the Pulumi
 * classes.
 */
function inTerraform(kind: KindOfProgram): KindOfProgram {
  const types = new Map(
    attributesOf(definitionNamed(kind.kind)).map(({ property, type }) => [property, type]),
  );
  const terraformValue = (property: string, value: unknown) => {
    const type = types.get(property);
    return type ? written(toTerraform(type, value)) : value;
  };
  const objects = kind.objects.map((object) => ({
    ...object,
    inputs: Object.fromEntries(
      Object.entries(object.inputs).map(([property, value]) => [property, terraformValue(property, value)]),
    ),
  }));
  return { ...kind, file: terraformName(kind.file), objects };
}

/**
 * Removes null properties, and normalizes the Unicode form of strings as Terraform does. Without the normalization, the
 * helpers would sort strings differently than Terraform.
 */
function written(value: unknown): unknown {
  if (typeof value === "string") return value.normalize();
  if (Array.isArray(value)) return value.map(written);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(members.map(([key, member]) => [key.normalize(), written(member)]));
}

const versionsFile = (oldest: string): ProgramFile =>
  fileOf("versions", {
    head: "terraform",
    groups: [{ required_version: `>= ${oldest}` }],
    blocks: [
      {
        head: "required_providers",
        groups: [{ gatehouse: { source: SOURCE, version: `~> ${packageVersion()}` } }],
      },
    ],
  });

function providerFile({ namespace, service, tenant }: ProgramOptions): ProgramFile {
  const comments = [
    `Device access in ${namespace} on ${service}.`,
    "The credential comes from the environment: GATEHOUSE_API_KEY, GATEHOUSE_TOKEN, or GATEHOUSE_USERNAME and",
    "GATEHOUSE_PASSWORD. Each variable also has a _FILE form. Set GATEHOUSE_URL to the service of the credential.",
  ].map(hclComment);
  return fileOf("provider", ...comments, {
    head: 'provider "gatehouse"',
    groups: [{ url: service, tenant }],
  });
}

const importsFile = (imports: readonly Block[]): ProgramFile =>
  fileOf(
    "imports",
    hclComment(
      "The existing objects that the resources import. You can delete this file after the first apply.",
    ),
    "",
    ...imports,
  );

function sharedFile(shared: SharedValues): ProgramFile {
  const values = [...shared.values()].map(({ name, value }) => [terraformName(name), value]);
  return fileOf("shared", { head: "locals", groups: [Object.fromEntries(values)] });
}

function declaredFile(
  kind: KindOfProgram,
  declarations: readonly Declaration[],
  shared: SharedValues,
  taken: readonly string[] = [],
): Part & { readonly addresses: readonly Code[] } {
  const labels = labelsOf(kind, declarations, taken);
  const resources = declarations.flatMap(({ args, comment }, index) => {
    const values = withShared(args, shared, ({ name }) => new Code(`local.${terraformName(name)}`));
    const attributes = Object.entries(values).map(([name, value]) => [terraformName(name), value]);
    return [
      ...commentsOf(comment),
      resourceBlock(kind, labels[index] ?? "", [Object.fromEntries(attributes)]),
    ];
  });
  const addresses = labels.map((label) => new Code(`${typeOf(kind)}.${label}`));
  return {
    file: fileOf(kind.file, ...notesOf(kind), ...resources),
    addresses,
    imports: declarations.map(({ id }, index) => ({
      head: "import",
      groups: [{ to: addresses[index], id }],
    })),
  };
}

function tableFiles(kind: KindOfProgram): Part {
  const withId = ({ id, inputs, ...object }: NamedObject) => ({ ...object, id, inputs: { id, ...inputs } });
  const table = tableOf({ ...kind, objects: kind.objects.map(withId) }, terraformName);
  const local = `local.${kind.file}`;
  const comments = [
    `One resource for each row of ${table.data.path}. Only imports.tf uses the id of a row: omit it in new rows.`,
    ...table.notes,
  ].map(hclComment);
  const rows = new Code(`jsondecode(file("\${path.module}/${table.data.path}"))`);
  const resource = resourceBlock(kind, kind.file, [{ for_each: new Code(local) }, readerOf(kind, table)]);
  const imported = {
    for_each: new Code(`{ for name, row in ${local} : name => row.id if can(row.id) }`),
    to: new Code(`${typeOf(kind)}.${kind.file}[each.key]`),
    id: new Code("each.value"),
  };
  return {
    file: fileOf(
      kind.file,
      { head: "locals", groups: [{ [kind.file]: rows }] },
      ...notesOf(kind),
      ...comments,
      resource,
    ),
    imports: [{ head: "import", groups: [imported] }],
    data: table.data,
  };
}

function readerOf({ kind }: KindOfProgram, { fills, columns }: Table): Values {
  const expression = ({ name, required }: Attribute): string => {
    const value = `each.value.${name}`;
    const column = columns.find(({ input }) => input === name);
    if (column) {
      const given = `each.value.${column.field}`;
      return `can(${given}) ? ${helperCall(column.helper, `${given}...`)} : ${value}`;
    }
    if (name === fills) return `try(${value}, each.key)`;
    return required ? value : `try(${value}, null)`;
  };
  return Object.fromEntries(
    attributesOf(definitionNamed(kind))
      .filter(({ role, property }) => role === "input" && property !== "tenant")
      .map((attribute) => [attribute.name, new Code(expression(attribute))]),
  );
}

const typeOf = ({ kind }: KindOfProgram): string => typeNameOf({ name: kind });

const resourceBlock = (kind: KindOfProgram, label: string, groups: Block["groups"]): Block => ({
  head: `resource "${typeOf(kind)}" "${label}"`,
  groups: [...groups, ...(kind.options?.dependsOn ? [{ depends_on: kind.options.dependsOn }] : [])],
  blocks: kind.options?.protect ? [{ head: "lifecycle", groups: [{ prevent_destroy: true }] }] : [],
});

/** Returns a valid Terraform resource name for each object. @param taken names of existing resources of the kind */
function labelsOf(
  { kind }: KindOfProgram,
  objects: readonly NamedObject[],
  taken: readonly string[],
): string[] {
  const own = terraformName(kind).slice(1);
  const wanted = objects.map(({ resource }) => {
    const label = resource.replaceAll(/[^A-Za-z0-9]+/g, "_").replaceAll(/^_|_$/g, "");
    return /^[A-Za-z]/.test(label) ? label : [own, label].filter((part) => part !== "").join("_");
  });
  return wanted.map(uniqueNames({ taken, wanted, joiner: "_" }));
}

const commentsOf = (comment: string | undefined): string[] =>
  comment === undefined ? [] : [hclComment(comment)];

const notesOf = ({ kind }: KindOfProgram): string[] => (NOTES[kind] ?? []).map(hclComment);

/** Joins comments and blocks to the content of a file. Each comment is directly above the next block. */
function fileOf(name: string, ...parts: readonly (string | Block)[]): ProgramFile {
  const texts = parts.map((part) => (typeof part === "string" ? part : `${blockText(part)}\n`));
  return { path: `${name}.tf`, text: `${texts.join("\n").trimEnd()}\n` };
}
