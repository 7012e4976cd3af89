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

/** A clause holds if at least one of its properties holds. */
type Clause = readonly Property[];

/** Maximum length of a filter on servers, in characters of base64. */
const MAX_LENGTH = 16_384;
/** Maximum number of clauses. More clauses cannot fit into {@link MAX_LENGTH}. */
const MAX_CLAUSES = 256;

/** Fields that are often used in filters. Any other stored field works too. */
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
 * A condition on the items of a list (rules section 6). `where`, `and` and `or` create it. Its string form is the
 * value of the `filter` parameter: base64 of a JSON array.
 */
export class Filter {
  /**
   * All clauses must hold. A clause holds if one of its properties holds: the wire supports only the nesting "all of
   * (any of …)".
   */
  readonly clauses: readonly Clause[];

  constructor(clauses: readonly Clause[]) {
    this.clauses = clauses;
  }

  /**
   * The filter in the form of the wire.
   * @throws ConfigurationError when it is longer than servers accept
   */
  toString(): string {
    const items = this.clauses.flatMap((clause) => [
      ...clause,
      // Every group gets an operator: lists interpret a group without an operator differently.
      { type: "operator", params: { name: clause.length > 1 ? "or" : "and" } },
    ]);
    // The text is ASCII only, so that a server that decodes bytes as Latin-1 reads the same text.
    const json = JSON.stringify(items).replace(
      /[\u0080-\uffff]/g,
      (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
    const text = Buffer.from(json, "latin1").toString("base64");
    if (text.length > MAX_LENGTH) {
      throw new ConfigurationError(`is ${text.length} characters long; the maximum is ${MAX_LENGTH}`, {
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
  /** For a text: the field contains it, ignoring letter case. For a list: the field contains all of its items. */
  contains(value: string | readonly string[]): Filter;
  eq(value: Scalar): Filter;
  /** Also true for items without the field. */
  ne(value: Scalar): Filter;
  gt(value: number): Filter;
  bool(value: boolean): Filter;
}

/**
 * Starts a condition on a field. Dots in the name lead to inner fields.
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

/** The condition that all of the filters hold. */
export function and(first: Filter, ...others: readonly Filter[]): Filter {
  return new Filter([first, ...others].flatMap((filter) => filter.clauses));
}

/**
 * The condition that at least one of the filters holds. An inner `and` is multiplied out, because the wire supports
 * only the nesting "all of (any of …)".
 * @throws ConfigurationError when the result has more groups than a server accepts
 */
export function or(first: Filter, ...others: readonly Filter[]): Filter {
  const clauses = others.reduce<readonly Clause[]>((sofar, filter) => {
    if (sofar.length * filter.clauses.length > MAX_CLAUSES) {
      throw new ConfigurationError("has too many combinations of and() inside or()", { field: ["filter"] });
    }
    return sofar.flatMap((left) => filter.clauses.map((right) => [...left, ...right]));
  }, first.clauses);
  return new Filter(clauses);
}
