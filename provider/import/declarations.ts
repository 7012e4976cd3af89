import { cidr, hostname, login } from "../helpers/patterns.ts";
import { HelperCall, inline, jsonLine, quoted } from "./literal.ts";
import { type KindOfProgram, type NamedObject, type ProgramFile, uniqueNames } from "./model.ts";

type Values = Readonly<Record<string, unknown>>;

/** Inputs with calls of helpers in place of the patterns that are exactly theirs. */
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

/** More objects of a kind are rows of a data file. */
const DECLARED_MAX = 12;

export interface Declaration extends NamedObject {
  readonly args: Values;
}

export const declarationOf = (object: NamedObject): Declaration => ({
  ...object,
  args: withHelpers(object.inputs),
});

/**
 * The objects that are declared one by one, by their kind, and the values that they share. A kind that has too many objects
 * for that has no entry.
 */
export function declarationsOf(kinds: readonly KindOfProgram[]): {
  readonly declared: ReadonlyMap<KindOfProgram, readonly Declaration[]>;
  readonly shared: SharedValues;
} {
  const few = kinds.filter(({ objects }) => objects.length <= DECLARED_MAX);
  const declared = new Map(few.map((kind) => [kind, kind.objects.map(declarationOf)]));
  return { declared, shared: sharedValues([...declared.values()].flat().map(({ args }) => args)) };
}

/** A value that several declarations have, and its name. */
interface SharedValue {
  readonly name: string;
  readonly value: unknown;
}

/** Shared values by their text, in the order in which they are met. */
export type SharedValues = ReadonlyMap<string, SharedValue>;

/** The inputs, with what `referring` returns in place of shared values. */
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
/** A shorter value is as clear as a name for it. */
const LENGTH_MIN = 16;

/** The inputs that values are shared of, and how the names begin. */
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

/** A pattern that a row may give by what a helper makes it of. */
interface Column {
  readonly input: string;
  /** The row's field in its place. */
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

/** Many objects of a kind as rows, by the resources' names. */
export interface Table {
  /** A file that people edit, one row a line. */
  readonly data: ProgramFile;
  /** The input that a row may leave out, since the resource's name says it; undefined where no row does. */
  readonly fills: string | undefined;
  readonly columns: readonly Column[];
  readonly notes: readonly string[];
}

/** @param nameIn how an input is called in rows */
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

/** Special in patterns, unless a backslash stands before it. */
const SPECIAL = /^(?:[^\\^$.|?*+()[\]{}]|\\[\\^$.|?*+()[\]{}])+$/u;

/** The names that `login` or `hostname` made the pattern of; undefined where neither did. */
export function namesIn(helper: "login" | "hostname", pattern: string): HelperCall | undefined {
  const parts = alternativesIn(pattern) ?? [];
  const args = parts.map((part) => (SPECIAL.test(part) ? part.replaceAll(/\\(.)/gu, "$1") : ""));
  return checked(helper, args, pattern);
}

/** The ranges that `cidr` made the pattern of; undefined where it did not. */
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

/** The whole of `^a$`, or the alternatives of `^(a|b)$`, of which each may have groups of its own. */
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
    // The first group ends before the pattern does.
    if (depth === 0 && !isLast) return [inner];
    if (isOuter) continue;
    if (depth === 1 && token === "|") parts.push("");
    else parts[parts.length - 1] += token;
  }
  return parts.length > 1 ? parts : [inner];
}

/** The range of four octets; undefined where they are none. */
function rangeOf(pattern: string): string | undefined {
  const octets = pattern.split("\\.").map((octet) => OCTETS.get(octet));
  if (octets.length !== 4 || !octets.every((octet) => octet !== undefined)) return undefined;
  const bits = octets.reduce((sum, { fixed }) => sum + fixed, 0);
  const address = octets.map(({ low }) => low).join(".");
  return bits === 32 ? address : `${address}/${bits}`;
}

/**
 * The octets that a range can have, by their pattern: those of each prefix of each length. `fixed` is how many of the first
 * bits are the same in all of them.
 */
const OCTETS: ReadonlyMap<string, { readonly low: number; readonly fixed: number }> = new Map(
  [0, 1, 2, 3, 4, 5, 6, 7, 8].flatMap((fixed) =>
    Array.from({ length: 2 ** fixed }, (_, index) => {
      const low = index * 2 ** (8 - fixed);
      // The first octet of a range of such a length.
      const [octet = ""] = cidr(`${low}.0.0.0/${fixed}`).slice(1).split("\\.");
      return [octet, { low, fixed }] as const;
    }),
  ),
);
