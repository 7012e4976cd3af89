import type { Values } from "../values.ts";
import { namesIn, rangesIn } from "./helperCalls.ts";
import { type HelperCall, inline, jsonLine, quoted } from "./literal.ts";
import { type KindOfProgram, type NamedObject, type ProgramFile, uniqueNames } from "./model.ts";

/** Replaces a pattern by a helper call if the call returns exactly this pattern. */
export const withHelpers = (inputs: Values): Values =>
  Object.fromEntries(
    Object.entries(inputs).map(([name, value]) => {
      if (name === "username") return [name, namesIn("login", String(value)) ?? value];
      if (name === "sourceIp") return [name, rangesIn(String(value)) ?? value];
      const pattern = name === "filter" ? (value as { hostname?: string }).hostname : undefined;
      if (pattern === undefined) return [name, value];
      return [name, { hostname: namesIn("hostname", pattern) ?? pattern }];
    }),
  );

/**
 * Maximum number of objects of one kind that get separate declarations. If a kind has more objects, the program
 * contains a data file with one row for each object.
 */
const DECLARED_MAX = 12;

export interface Declaration extends NamedObject {
  readonly args: Values;
}

export const declarationOf = (object: NamedObject): Declaration => ({
  ...object,
  args: withHelpers(object.inputs),
});

/**
 * Returns the objects that get separate declarations, by kind, and the values that several declarations share. A kind
 * with more than {@link DECLARED_MAX} objects has no entry.
 */
export function declarationsOf(kinds: readonly KindOfProgram[]): {
  readonly declared: ReadonlyMap<KindOfProgram, readonly Declaration[]>;
  readonly shared: SharedValues;
} {
  const few = kinds.filter(({ objects }) => objects.length <= DECLARED_MAX);
  const declared = new Map(few.map((kind) => [kind, kind.objects.map(declarationOf)]));
  return { declared, shared: sharedValues([...declared.values()].flat().map(({ args }) => args)) };
}

/** A value that several declarations use, such as a login pattern, and the name of the variable that replaces it. */
interface SharedValue {
  readonly name: string;
  readonly value: unknown;
}

/** Shared values by their source text, in the order of their first use. */
export type SharedValues = ReadonlyMap<string, SharedValue>;

/**
 * Replaces the shared values in a resource's inputs by references to the variables.
 * @param referring returns the reference to the variable of a shared value
 */
export const withShared = (
  inputs: Values,
  shared: SharedValues,
  referring: (value: SharedValue) => unknown,
): Values =>
  Object.fromEntries(
    Object.entries(inputs).map(([name, value]) => {
      const found = shared.get(inline(value));
      return [name, found ? referring(found) : value];
    }),
  );

const SHARED_MIN = 3;
/**
 * Minimum length of the source text of a shared value. A shorter value gets no variable, since it is as easy to read as
 * a variable name.
 */
const LENGTH_MIN = 16;

/** The inputs whose values can be shared, with the prefixes of the variable names. */
const PREFIXES: Readonly<Record<string, string>> = { username: "login", sourceIp: "from", filter: "on" };

export function sharedValues(declarations: readonly Values[]): SharedValues {
  const counts = new Map<string, { readonly input: string; readonly value: unknown; count: number }>();
  for (const declaration of declarations) {
    for (const input of Object.keys(PREFIXES)) {
      const value = declaration[input];
      const isTags = typeof value === "object" && value !== null && "tags" in value;
      if (value === undefined || isTags) continue;
      const text = inline(value);
      const known = counts.get(text);
      if (known) known.count += 1;
      else if (text.length >= LENGTH_MIN) counts.set(text, { input, value, count: 1 });
    }
  }
  const unique = uniqueNames({ joiner: "" });
  const shared = new Map<string, SharedValue>();
  for (const [text, { input, value, count }] of counts) {
    if (count < SHARED_MIN) continue;
    shared.set(text, { name: unique(identifierOf(PREFIXES[input] ?? "", text)), value });
  }
  return shared;
}

const IDENTIFIER_MAX = 40;

/**
 * Returns a variable name for a shared value, such as `loginRootAna` for `login("root", "ana")` or `from10_0_0_0_8` for
 * `cidr("10.0.0.0/8")`.
 * @param plain the name for a value without letters and digits
 */
export function identifierOf(prefix: string, text: string, plain = `${prefix}Pattern`): string {
  if (text === '{ hostname: ".*" }') return "onEveryDevice";
  const words = text.replace(/^(login|cidr)\(|\{ hostname: (hostname\()?/, "").match(/[A-Za-z]+|[0-9]+/g);
  const joined = (words ?? []).reduce((name, word) => {
    if (/^[0-9]/.test(word)) return `${name}${/[0-9]$/.test(name) ? "_" : ""}${word}`;
    return `${name}${word.charAt(0).toUpperCase()}${word.slice(1)}`;
  }, prefix);
  return joined === prefix ? plain : joined.slice(0, IDENTIFIER_MAX);
}

/**
 * A column of a data file that contains a pattern. If a helper such as `login` can generate the pattern, the row
 * contains the helper's arguments instead.
 */
interface Column {
  readonly input: string;
  /** The name of the row's field that contains the helper's arguments. */
  readonly field: string;
  readonly helper: "login" | "cidr";
  readonly what: string;
  readonly callIn: (pattern: string) => HelperCall | undefined;
}

const COLUMNS: readonly Column[] = [
  {
    input: "username",
    field: "logins",
    helper: "login",
    what: "exact names",
    callIn: (pattern) => namesIn("login", pattern),
  },
  { input: "sourceIp", field: "ranges", helper: "cidr", what: "networks", callIn: rangesIn },
];

/** The rows of a data file for a kind with many objects, by resource name. */
export interface Table {
  /** The data file. Each row is on its own line, so that users can edit the file. */
  readonly data: ProgramFile;
  /** The input that defaults to the resource's name if a row omits it. Undefined if no row omits the input. */
  readonly fills: string | undefined;
  readonly columns: readonly Column[];
  readonly notes: readonly string[];
}

/**
 * Returns the data file of a kind with many objects, and its columns.
 * @param nameIn returns the field name that an input has in the rows of the data file
 */
export function tableOf(
  { file, objects, ...kind }: KindOfProgram,
  nameIn = (input: string): string => input,
): Table {
  // A row may omit this input only if all objects have the input. Otherwise, the default would add the input to objects
  // that do not have it.
  const naming = objects.every(({ inputs }) => kind.naming !== undefined && kind.naming in inputs)
    ? kind.naming
    : undefined;
  const rows = objects.map((object) => rowOf(object, naming, nameIn));
  const lines = objects.map(({ resource }, index) => `  ${quoted(resource)}: ${jsonLine(rows[index])}`);
  const fills =
    naming !== undefined && rows.some((row) => !(nameIn(naming) in row)) ? nameIn(naming) : undefined;
  // A different kind can have an input with the same name as a column's field.
  const ofKind = COLUMNS.filter(({ input }) => objects.some(({ inputs }) => input in inputs));
  const columns = ofKind
    .filter(({ field }) => rows.some((row) => field in row))
    .map((column) => ({
      ...column,
      input: nameIn(column.input),
    }));
  return {
    // The data files are in a separate folder, since Node.js would resolve `./keys` to keys.json instead of keys.ts.
    data: { path: `data/${file}.json`, text: `{\n${lines.join(",\n")}\n}\n` },
    fills,
    columns,
    notes: [
      ...(fills ? [`Default of ${fills}: the resource's name.`] : []),
      ...columns.map(
        ({ input, field, what }) => `The field ${field} contains ${what}; ${input} is a pattern.`,
      ),
    ],
  };
}

function rowOf(
  { inputs, resource }: NamedObject,
  naming: string | undefined,
  nameIn: (input: string) => string,
): Values {
  const entries = Object.entries(inputs).flatMap(([name, value]): [string, unknown][] => {
    if (name === naming && value === resource) return [];
    const column = COLUMNS.find(({ input }) => input === name);
    const args = column?.callIn(String(value))?.args;
    return [column && args ? [column.field, args] : [nameIn(name), value]];
  });
  return Object.fromEntries(entries);
}
