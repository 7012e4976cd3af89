import { HelperCode, inline, jsonLine, quoted } from "./literal.ts";
import { type KindOfProgram, type NamedObject, type ProgramFile, uniqueNames } from "./model.ts";
import { namesIn, rangesIn } from "./patterns.ts";

type Values = Readonly<Record<string, unknown>>;

/** Inputs with calls of helpers in place of the patterns that are exactly theirs. */
export function withHelpers(inputs: Values): Values {
  const call = (found: ReturnType<typeof namesIn>, pattern: unknown): unknown => {
    return found ? new HelperCode(found) : pattern;
  };
  return Object.fromEntries(
    Object.entries(inputs).map(([name, value]) => {
      if (name === "username") return [name, call(namesIn("login", String(value)), value)];
      if (name === "sourceIp") return [name, call(rangesIn(String(value)), value)];
      const pattern = name === "filter" ? (value as { hostname?: string }).hostname : undefined;
      if (pattern === undefined) return [name, value];
      return [name, { hostname: call(namesIn("hostname", pattern), pattern) }];
    }),
  );
}

/** More objects of a kind are rows of a data file. */
const DECLARED_MAX = 12;

/** An object that is declared by itself. */
export interface Declaration extends NamedObject {
  readonly args: Values;
}

export const declarationOf = (object: NamedObject): Declaration => ({
  ...object,
  args: withHelpers(object.inputs),
});

/** The objects that are declared one by one, by their kind; a kind that has too many for that is in none. */
export const declarationsOf = (
  kinds: readonly KindOfProgram[],
): ReadonlyMap<KindOfProgram, readonly Declaration[]> =>
  new Map(
    kinds
      .filter(({ objects }) => objects.length <= DECLARED_MAX)
      .map((kind) => [kind, kind.objects.map(declarationOf)]),
  );

/** A value that several declarations have, and its name. */
export interface SharedValue {
  readonly name: string;
  readonly value: unknown;
}

/** So many declarations share a value that has a name. */
const SHARED_MIN = 3;
/** A shorter value is as clear as a name for it. */
const LENGTH_MIN = 16;

/** The inputs that values are shared of, and how the names begin. */
const PREFIXES: Readonly<Record<string, string>> = { username: "login", sourceIp: "from", filter: "on" };

/** The values that several declarations share, by their text, in the order in which they are met. */
export function sharedValues(declarations: readonly Values[]): ReadonlyMap<string, SharedValue> {
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

/** `login("root", "ana")` as `loginRootAna`, `cidr("10.0.0.0/8")` as `from10_0_0_0_8`. */
function identifierOf(prefix: string, text: string): string {
  if (text === '{ hostname: ".*" }') return "onEveryDevice";
  const words = text.replace(/^(login|cidr)\(|\{ hostname: (hostname\()?/, "").match(/[A-Za-z]+|[0-9]+/g);
  const joined = (words ?? []).reduce((name, word) => {
    if (/^[0-9]/.test(word)) return `${name}${/[0-9]$/.test(name) ? "_" : ""}${word}`;
    return `${name}${word.charAt(0).toUpperCase()}${word.slice(1)}`;
  }, prefix);
  return joined === prefix ? `${prefix}Pattern` : joined.slice(0, IDENTIFIER_MAX);
}

type Row = Readonly<Record<string, unknown>>;

/** A pattern that a row may give by what a helper makes it of. */
interface Column {
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
