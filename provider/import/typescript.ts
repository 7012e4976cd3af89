import type { Declarable } from "../namespace/liveObjects.ts";
import { packageManifest } from "../packageFile.ts";
import { accessPolicy } from "../resources/accessPolicy.ts";
import { printable } from "../words.ts";
import {
  type Declaration,
  declarationOf,
  declarationsOf,
  identifierOf,
  type SharedValues,
  type Table,
  tableOf,
  withHelpers,
  withShared,
} from "./declarations.ts";
import { Code, construction, HelperCall, jsonText, literal } from "./literal.ts";
import {
  type KindOfProgram,
  namedByKind,
  type ProgramFile,
  type ProgramOptions,
  uniqueNames,
  withNamespaceLast,
  withSubject,
} from "./model.ts";
import { yamlText } from "./yaml.ts";

const PROVIDER = "@gatehouse-access/provider";
const SDK = "@gatehouse-access/pulumi";

/** Returns the files of a TypeScript program: one file for each kind of object, and data files for long lists. */
export function typescriptFiles(
  existing: readonly KindOfProgram[],
  added: readonly KindOfProgram[],
  options: ProgramOptions,
  leftOut: readonly Declarable[],
): ProgramFile[] {
  const kinds = withNamespaceLast(existing, added.length > 0 ? new Code(POLICIES) : undefined);
  const { declared, shared } = declarationsOf(kinds);
  return [
    ...projectFiles(options),
    { path: "index.ts", text: indexText(kinds, options, leftOut) },
    ...(shared.size > 0 ? [sharedFile(shared)] : []),
    ...(added.length > 0 ? [addedFile(added, options)] : []),
    ...kinds.flatMap((kind) => {
      const declarations = declared.get(kind);
      if (declarations) return [declaredFile(kind, declarations, shared, options)];
      const table = tableOf(kind);
      return [{ path: `${kind.file}.ts`, text: readerText(kind, table, options) }, table.data];
    }),
  ];
}

/** Returns TypeScript statements that declare objects with `adopt: true`, to add to an existing program. */
export const typescriptAdoptions = (
  objects: readonly Declarable[],
  takenOf: (kind: string) => Iterable<string>,
): string =>
  namedByKind(objects, takenOf)
    .map(({ definition, resource, inputs }) =>
      construction(definition.name, resource, { ...withHelpers(inputs), adopt: true }),
    )
    .join("\n");

function projectFiles({ project, namespace, plugin }: ProgramOptions): ProgramFile[] {
  const { version, peerDependencies } = packageManifest();
  const { typescript, ...dependencies } = peerDependencies;
  const manifest = {
    name: project.toLowerCase().replaceAll(/[^a-z0-9-]+/g, "-"),
    private: true,
    main: "index.ts",
    dependencies: { [PROVIDER]: `^${version}`, ...dependencies },
    devDependencies: { "@types/node": ">=22", typescript },
  };
  const compilerOptions = {
    strict: true,
    outDir: "bin",
    target: "es2022",
    module: "commonjs",
    moduleResolution: "node",
    ignoreDeprecations: "6.0",
    types: ["node"],
    sourceMap: true,
  };
  const description = `Device access in ${printable(namespace)}`;
  const json = (value: unknown) => jsonText(value, 2);
  return [
    { path: "Pulumi.yaml", text: yamlText({ name: project, description, runtime: "nodejs" }) },
    { path: "package.json", text: json(manifest) },
    { path: "tsconfig.json", text: json({ compilerOptions, include: ["*.ts"] }) },
    { path: ".gitignore", text: "bin/\nnode_modules/\n" },
    ...(plugin ? [{ path: "README.md", text: PLUGIN_README }] : []),
  ];
}

const PLUGIN_README = `Run \`pulumi package add gatehouse\`. It generates the plugin's SDK with the resource classes, and adds it to package.json.
`;

function indexText(
  kinds: readonly KindOfProgram[],
  { namespace, service }: ProgramOptions,
  leftOut: readonly Declarable[],
): string {
  const left = leftOut.map(({ definition, name }) => `${definition.name} ${printable(name)}`);
  return [
    `// Device access in ${printable(namespace)} on ${printable(service)}.`,
    ...(left.length > 0 ? [`// Omitted, since they cannot be adopted: ${left.join(", ")}.`] : []),
    ...kinds.map(({ file }) => `import "./${file}";`),
    "",
  ].join("\n");
}

function declaredFile(
  kind: KindOfProgram,
  declarations: readonly Declaration[],
  shared: SharedValues,
  { adopt, plugin }: ProgramOptions,
): ProgramFile {
  const names = new Set<string>();
  const statements = declarations.map(({ resource, args, comment }) => {
    const short = withShared(args, shared, ({ name }) => {
      names.add(name);
      return new Code(name);
    });
    return { args: { ...short, ...(adopt && { adopt }) }, resource, comment };
  });
  const helpers = helpersIn(statements.map(({ args }) => args));
  const texts = statements.map((statement) => statementText(kind, statement));
  const imports = [
    ...importsOf([kind.kind], plugin, helpers),
    ...importLines("./identityMode", kind.options?.dependsOn ? [POLICIES] : []),
    ...importLines("./shared", [...names]),
  ];
  return { path: `${kind.file}.ts`, text: `${[...imports, "", ...texts].join("\n")}\n` };
}

const statementText = (
  { kind, options }: KindOfProgram,
  { resource, args, comment }: Pick<Declaration, "resource" | "args" | "comment">,
) =>
  (comment === undefined ? "" : `// ${printable(comment)}\n`) + construction(kind, resource, args, options);

/** The name of the variable that contains all new access policies. */
const POLICIES = "accessPolicies";

function addedFile(kinds: readonly KindOfProgram[], { plugin }: ProgramOptions): ProgramFile {
  const unique = uniqueNames({ taken: [POLICIES], joiner: "_" });
  const accountIds = new Map<string, Code>();
  const args: object[] = [];
  const sections = kinds.map((kind) => {
    const isPolicy = kind.kind === accessPolicy.definition.name;
    const texts = kind.objects.map((object) => {
      const declaration = declarationOf(withSubject(object, accountIds));
      args.push(declaration.args);
      const text = statementText(kind, declaration);
      if (isPolicy) return text.replace(/;$/, ",").replaceAll(/^/gm, "  ");
      const name = unique(identifierOf("account", object.resource, "account"));
      accountIds.set(object.id, new Code(`${name}.accountId`));
      return `const ${name} = ${text}`;
    });
    return isPolicy ? [`export const ${POLICIES} = [`, ...texts, "];"] : texts;
  });
  const classes = kinds.map(({ kind }) => kind);
  const parts = [importsOf(classes, plugin, helpersIn(args)), ...sections];
  return { path: "identityMode.ts", text: `${parts.map((lines) => lines.join("\n")).join("\n\n")}\n` };
}

function sharedFile(shared: SharedValues): ProgramFile {
  const values = [...shared.values()];
  const helpers = helpersIn(values);
  const constants = values.map(({ name, value }) => `export const ${name} = ${literal(value)};`);
  const imports = helpers.length > 0 ? [...importLines(PROVIDER, helpers), ""] : [];
  return { path: "shared.ts", text: [...imports, ...constants, ""].join("\n") };
}

function helpersIn(value: unknown): string[] {
  const found = new Set<string>();
  const look = (part: unknown): void => {
    if (part instanceof HelperCall) found.add(part.helper);
    else if (typeof part === "object" && part !== null) Object.values(part).forEach(look);
  };
  look(value);
  return [...found];
}

function readerText(
  { kind, file }: KindOfProgram,
  { fills, columns, notes }: Table,
  { adopt, plugin }: ProgramOptions,
): string {
  const resource = fills ?? "resource";
  const row = [...columns.map(({ field }) => field), columns.length > 0 ? "...row" : "row"].join(", ");
  const args = [
    ...(fills ? [fills] : []),
    "...row",
    ...columns.map(
      ({ input, field, helper }) => `${input}: ${field} ? ${helper}(...${field}) : row.${input}`,
    ),
    ...(adopt ? ["adopt: true"] : []),
  ];
  const classes = [kind, `type ${kind}Args`];
  const helpers = columns.map(({ helper }) => helper);
  const fields = [
    ...(fills ? [`${fills}?: string`] : []),
    ...columns.map(({ field }) => `${field}?: string[]`),
  ];
  const own = fills ? `Omit<${kind}Args, "${fills}">` : `${kind}Args`;
  return [
    'import { readFileSync } from "node:fs";',
    'import { join } from "node:path";',
    ...importsOf(classes, plugin, helpers),
    "",
    "/**",
    ` * A row of data/${file}.json, by the resource's name.`,
    ...notes.map((note) => ` * ${note}`),
    " */",
    `type Row = ${[own, ...(fields.length > 0 ? [`{ ${fields.join("; ")} }`] : [])].join(" & ")};`,
    `const rows: Record<string, Row> = JSON.parse(readFileSync(join(__dirname, "data", "${file}.json"), "utf8"));`,
    "",
    `for (const [${resource}, ${columns.length > 0 ? `{ ${row} }` : row}] of Object.entries(rows)) {`,
    ...construct(kind, resource, args),
    "}",
    "",
  ].join("\n");
}

const LINE_MAX = 110;

function construct(kind: string, resource: string, args: readonly string[]): string[] {
  const line = `  new ${kind}(${resource}, { ${args.join(", ")} });`;
  if (line.length <= LINE_MAX) return [line];
  return [`  new ${kind}(${resource}, {`, ...args.map((arg) => `    ${arg},`), "  });"];
}

/**
 * Returns the import statements for helpers and resource classes. The classes come from the provider package, or from
 * the generated SDK of the plugin.
 */
function importsOf(classes: readonly string[], plugin: boolean, helpers: readonly string[]): string[] {
  if (!plugin) return importLines(PROVIDER, [...classes, ...helpers]);
  return [...importLines(PROVIDER, helpers), ...importLines(SDK, classes)];
}

const nameIn = (specifier: string) => specifier.replace("type ", "");

function importLines(from: string, names: readonly string[]): string[] {
  const sorted = names.toSorted((left, right) => nameIn(left).localeCompare(nameIn(right), "en"));
  return sorted.length === 0 ? [] : [`import { ${sorted.join(", ")} } from "${from}";`];
}
