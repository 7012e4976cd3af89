import { cidr, hostname, login } from "../helpers/patterns.ts";
import { HelperCall, inline, jsonLine, quoted } from "./literal.ts";
import { type KindOfProgram, type NamedObject, type ProgramFile, uniqueNames } from "./model.ts";

type Values = Readonly<Record<string, unknown>>;

/** Replaces a pattern by a call of a helper if the call returns exactly this pattern. */
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
 * Maximum number of objects of a kind with separate declarations. A kind with more objects has a data file with a row
 * for each object.
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
 * Returns the objects with separate declarations, by kind, and the values that several declarations share. A kind with
 * more than {@link DECLARED_MAX} objects has no entry.
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
 * Replaces the shared values in a resource's inputs by references to the variables. `referring` returns the reference.
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
 * Minimum length of the source text of a shared value. A shorter value gets no variable, since the value is as clear as
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
 */
function identifierOf(prefix: string, text: string): string {
  if (text === '{ hostname: ".*" }') return "onEveryDevice";
  const words = text.replace(/^(login|cidr)\(|\{ hostname: (hostname\()?/, "").match(/[A-Za-z]+|[0-9]+/g);
  const joined = (words ?? []).reduce((name, word) => {
    if (/^[0-9]/.test(word)) return `${name}${/[0-9]$/.test(name) ? "_" : ""}${word}`;
    return `${name}${word.charAt(0).toUpperCase()}${word.slice(1)}`;
  }, prefix);
  return joined === prefix ? `${prefix}Pattern` : joined.slice(0, IDENTIFIER_MAX);
}

/**
 * A pattern input in a data file. If a helper such as `login` returns the pattern, the row contains the helper's
 * arguments instead.
 */
interface Column {
  readonly input: string;
  /** The row's field for the helper's arguments. */
  readonly field: string;
  readonly helper: "login" | "cidr";
  readonly what: string;
  readonly callIn: (pattern: string) => HelperCall | undefined;
}

const COLUMNS: readonly Column[] = [
  {
    ...{ input: "username", field: "logins", helper: "login", what: "exact names" },
    callIn: (pattern) => namesIn("login", pattern),
  },
  { ...{ input: "sourceIp", field: "ranges", helper: "cidr", what: "networks" }, callIn: rangesIn },
];

/** Many objects of a kind as rows of a data file, by the names of the resources. */
export interface Table {
  /** Content of the data file, with one line for each row so that users can edit the file. */
  readonly data: ProgramFile;
  /** The input whose default in a row is the resource's name; undefined if no row omits the input. */
  readonly fills: string | undefined;
  readonly columns: readonly Column[];
  readonly notes: readonly string[];
}

/** @param nameIn returns the field name that an input has in the rows of the data file */
export function tableOf(
  { file, objects, ...kind }: KindOfProgram,
  nameIn = (input: string): string => input,
): Table {
  // A row may omit this input only if all objects have the input. Otherwise the resource's name would also become the
  // input of an object without this input.
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

/** Matches a pattern in which each special character has a backslash before it. */
const ESCAPED = /^(?:[^\\^$.|?*+()[\]{}]|\\[\\^$.|?*+()[\]{}])+$/u;

/** Returns the call of `login` or `hostname` that returns the pattern; undefined if no call returns the pattern. */
export function namesIn(helper: "login" | "hostname", pattern: string): HelperCall | undefined {
  const parts = alternativesIn(pattern) ?? [];
  const args = parts.map((part) => (ESCAPED.test(part) ? part.replaceAll(/\\(.)/gu, "$1") : ""));
  return checked(helper, args, pattern);
}

/** Returns the call of `cidr` that returns the pattern; undefined if no call returns the pattern. */
export function rangesIn(pattern: string): HelperCall | undefined {
  const args = (alternativesIn(pattern) ?? []).map(rangeOf);
  return args.every((range) => range !== undefined) ? checked("cidr", args, pattern) : undefined;
}

const HELPERS = { login, hostname, cidr };

function checked(
  helper: HelperCall["helper"],
  args: readonly string[],
  pattern: string,
): HelperCall | undefined {
  try {
    return HELPERS[helper](...args) === pattern ? new HelperCall(helper, args) : undefined;
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

/**
 * Returns the alternatives of an anchored pattern: `a` and `b` for `^(a|b)$`, and `a` for `^a$`. An alternative can
 * contain groups.
 */
function alternativesIn(pattern: string): string[] | undefined {
  const inner = /^\^(.*)\$$/su.exec(pattern)?.[1];
  if (inner === undefined) return undefined;
  const tokens = [...inner.matchAll(/\\.|./gsu)].map(([token]) => token);
  const parts = [""];
  let depth = 0;
  for (const [index, token] of tokens.entries()) {
    const isLast = index === tokens.length - 1;
    const isOuter = (index === 0 && token === "(") || (isLast && token === ")");
    if (token === "(" || token === "[") depth += 1;
    if (token === ")" || token === "]") depth -= 1;
    // The first group ends before the pattern ends, so the pattern is not a single group of alternatives.
    if (depth === 0 && !isLast) return [inner];
    if (isOuter) continue;
    if (depth === 1 && token === "|") parts.push("");
    else parts[parts.length - 1] += token;
  }
  return parts.length > 1 ? parts : [inner];
}

/** Returns the address range that a pattern of four octets matches; undefined for other patterns. */
function rangeOf(pattern: string): string | undefined {
  const octets = pattern.split("\\.").map((octet) => OCTETS.get(octet));
  if (octets.length !== 4 || !octets.every((octet) => octet !== undefined)) return undefined;
  const bits = octets.reduce((sum, { fixed }) => sum + fixed, 0);
  const address = octets.map(({ low }) => low).join(".");
  return bits === 32 ? address : `${address}/${bits}`;
}

/**
 * The possible octets of address ranges, by the pattern of the octet. `fixed` is the number of leading bits that all
 * values of the octet have in common.
 */
const OCTETS: ReadonlyMap<string, { readonly low: number; readonly fixed: number }> = new Map(
  [0, 1, 2, 3, 4, 5, 6, 7, 8].flatMap((fixed) =>
    Array.from({ length: 2 ** fixed }, (_, index) => {
      const low = index * 2 ** (8 - fixed);
      // The helper `cidr` returns the pattern of the complete range. Its first part is the pattern of the first octet.
      const [octet = ""] = cidr(`${low}.0.0.0/${fixed}`).slice(1).split("\\.");
      return [octet, { low, fixed }] as const;
    }),
  ),
);
