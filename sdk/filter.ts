import { ConfigurationError } from "./errors.ts";

type Scalar = string | number | boolean;

interface Property {
  readonly type: "property";
  readonly params: {
    readonly name: string;
    readonly operator: string;
    readonly value: Scalar | readonly string[];
  };
}

/** At least one of the properties must hold. */
type Clause = readonly Property[];

/** Longest filter a server takes, in characters of base64. */
const MAX_LENGTH = 16_384;
/** More clauses than this cannot fit into {@link MAX_LENGTH}. */
const MAX_CLAUSES = 256;

/** Fields that lists are often filtered by; any other stored field works too. */
export type FilterField =
  | "name"
  | "tags"
  | "online"
  | "info.id"
  | "identity.mac"
  | "username"
  | "fingerprint"
  | "filter.tags"
  | "filter.hostname";

/**
 * A condition on the items of a list (rules section 6), which `where`, `and` and `or` make. Its string form is the
 * value of the `filter` parameter: base64 of a JSON array.
 */
export class Filter {
  /** All of these must hold, each by one of its properties: the wire has no other nesting than "all of (any of …)". */
  readonly clauses: readonly Clause[];

  constructor(clauses: readonly Clause[]) {
    this.clauses = clauses;
  }

  /** The filter as the wire has it. @throws ConfigurationError when it is longer than servers take */
  toString(): string {
    const items = this.clauses.flatMap((clause) => [
      ...clause,
      // Every group gets its operator: lists differ in what they make of one without.
      { type: "operator", params: { name: clause.length > 1 ? "or" : "and" } },
    ]);
    // ASCII only, so that a server that decodes bytes as Latin-1 reads the same.
    const json = JSON.stringify(items).replace(
      /[\u0080-\uffff]/g,
      (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
    const text = Buffer.from(json, "latin1").toString("base64");
    if (text.length > MAX_LENGTH) {
      throw new ConfigurationError(`is ${text.length} characters long, a server takes ${MAX_LENGTH}`, {
        field: ["filter"],
      });
    }
    return text;
  }

  toJSON(): string {
    return this.toString();
  }
}

function property(name: string, operator: string, value: Scalar | readonly string[]): Filter {
  return new Filter([[{ type: "property", params: { name, operator, value } }]]);
}

/** The comparisons of one field. */
export interface Comparisons {
  /** A text: the field holds it, in any letter case. A list: the field holds all of its items. */
  contains(value: string | readonly string[]): Filter;
  eq(value: Scalar): Filter;
  /** Also true for items that do not have the field. */
  ne(value: Scalar): Filter;
  gt(value: number): Filter;
  bool(value: boolean): Filter;
}

/**
 * Begins a condition on a field; dots lead to fields inside of it.
 * @example where("tags").contains(["prod"])
 */
export function where<Name extends string = FilterField>(
  field: Name | FilterField | (string & {}),
): Comparisons {
  return {
    contains: (value) => property(field, "contains", value),
    eq: (value) => property(field, "eq", value),
    ne: (value) => property(field, "ne", value),
    gt: (value) => property(field, "gt", value),
    bool: (value) => property(field, "bool", value),
  };
}

/** The condition that all of these hold. */
export function and(first: Filter, ...others: readonly Filter[]): Filter {
  return new Filter([first, ...others].flatMap((filter) => filter.clauses));
}

/**
 * The condition that at least one of these holds. An `and` inside of it is multiplied out, since the wire has no other
 * nesting than "all of (any of …)".
 * @throws ConfigurationError when that makes more groups than a server takes
 */
export function or(first: Filter, ...others: readonly Filter[]): Filter {
  const clauses = others.reduce<readonly Clause[]>((sofar, filter) => {
    if (sofar.length * filter.clauses.length > MAX_CLAUSES) {
      throw new ConfigurationError("too many combinations of and() inside or()", { field: ["filter"] });
    }
    return sofar.flatMap((left) => filter.clauses.map((right) => [...left, ...right]));
  }, first.clauses);
  return new Filter(clauses);
}
