import { importsOf } from "./imports.ts";
import { jsonLine, quoted } from "./literal.ts";
import type { KindOfProgram, ProgramFile } from "./model.ts";
import type { NamedObject } from "./names.ts";
import { namesIn, rangesIn } from "./patterns.ts";

/** Where a program's imports come from. */
interface Packages {
  readonly adopt: boolean;
  /** The package of the classes. */
  readonly from: string;
  readonly helpersFrom: string;
}

type Row = Readonly<Record<string, unknown>>;

/** A pattern that a row may give by what a helper makes it of. */
export interface Column {
  readonly input: string;
  /** The row's field in its place. */
  readonly field: string;
  readonly helper: "login" | "cidr";
  /** What the field has. */
  readonly what: string;
  readonly argsIn: (pattern: string) => { readonly args: readonly string[] } | undefined;
}

const COLUMNS: readonly Column[] = [
  {
    ...{ input: "username", field: "logins", helper: "login", what: "exact names" },
    argsIn: (pattern) => namesIn("login", pattern),
  },
  {
    ...{ input: "sourceIp", field: "ranges", helper: "cidr", what: "networks" },
    argsIn: rangesIn,
  },
];

/** Many objects of a kind as rows, by the resources' names. */
export interface Table {
  /** A file that people edit, one row a line. */
  readonly data: ProgramFile;
  /** The input that a row may leave out, since the resource's name says it; undefined where no row does. */
  readonly fills: string | undefined;
  readonly columns: readonly Column[];
  /** What readers are told of the rows. */
  readonly notes: readonly string[];
}

/** Many objects of a kind: the table, and the few lines that read it. */
export function dataFiles(kind: KindOfProgram, packages: Packages): ProgramFile[] {
  const table = tableOf(kind);
  return [{ path: `${kind.file}.ts`, text: readerText(kind, table, packages) }, table.data];
}

/**
 * The table of many objects.
 * @param nameIn how an input is called in rows
 */
export function tableOf(
  { file, objects, ...kind }: KindOfProgram,
  nameIn = (input: string): string => input,
): Table {
  // Where an object says nothing of it, its row must not be taken to.
  const naming = objects.every(({ inputs }) => kind.naming !== undefined && kind.naming in inputs)
    ? kind.naming
    : undefined;
  const rows = objects.map((object) => rowOf(object, naming, nameIn));
  const lines = objects.map(({ resource }, index) => `  ${quoted(resource)}: ${jsonLine(rows[index])}`);
  const fills =
    naming !== undefined && rows.some((row) => !(nameIn(naming) in row)) ? nameIn(naming) : undefined;
  const columns = COLUMNS.filter(({ field }) => rows.some((row) => field in row)).map((column) => ({
    ...column,
    input: nameIn(column.input),
  }));
  return {
    // In a folder of its own: Node.js takes `./keys` for keys.json rather than for keys.ts.
    data: { path: `data/${file}.json`, text: `{\n${lines.join(",\n")}\n}\n` },
    fills,
    columns,
    notes: [
      ...(fills ? [`Where it has no ${fills}, that is the name too.`] : []),
      ...columns.map(({ input, field, what }) => `Its ${field} are ${what}; a ${input} is a pattern.`),
    ],
  };
}

/** The inputs of an object, without the one that its resource's name says. */
function rowOf(
  { inputs, resource }: NamedObject,
  naming: string | undefined,
  nameIn: (input: string) => string,
): Row {
  const entries = Object.entries(inputs).flatMap(([name, value]): [string, unknown][] => {
    if (name === naming && value === resource) return [];
    const column = COLUMNS.find(({ input }) => input === name);
    const args = column?.argsIn(String(value))?.args;
    return [column && args ? [column.field, args] : [nameIn(name), value]];
  });
  return Object.fromEntries(entries);
}

/** The program that reads the rows. */
function readerText(
  { kind, file }: KindOfProgram,
  { fills, columns, notes }: Table,
  { adopt, from, helpersFrom }: Packages,
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
    ...importsOf({ classes, from }, { helpers, from: helpersFrom }),
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
