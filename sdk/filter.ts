import { camelKey } from "./case.ts";
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

/**
 * A clause of a filter: comparisons that are joined with "or". An item satisfies the clause if it satisfies at least
 * one of them.
 */
type Clause = readonly Property[];

/** Maximum length of a filter that servers accept, in characters of base64. */
const MAX_LENGTH = 16_384;
/** Maximum number of clauses of a filter. A filter with more clauses would exceed {@link MAX_LENGTH}. */
const MAX_CLAUSES = 256;

/** Fields that are often used in filters. Filters can also use any other stored field. */
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
 * A condition on the items of a list (rules section 6), created by `where`, `and` and `or`. The string form of a filter
 * is the value of the `filter` parameter: base64 of a JSON array.
 */
export class Filter {
  /**
   * The clauses of the filter. An item must satisfy all clauses, and satisfies a clause if it satisfies at least one of
   * the clause's comparisons. The API supports only this nesting: "all of (any of …)".
   */
  readonly clauses: readonly Clause[];

  constructor(clauses: readonly Clause[]) {
    this.clauses = clauses;
  }

  /**
   * Returns the value of the `filter` parameter.
   * @throws ConfigurationError when the value is longer than servers accept
   */
  toString(): string {
    const items = this.clauses.flatMap((clause) => [
      ...clause,
      // Every group ends with an explicit operator, because the lists of a server have different default operators.
      { type: "operator", params: { name: clause.length > 1 ? "or" : "and" } },
    ]);
    // The JSON contains only ASCII characters, so that a server that decodes bytes as Latin-1 reads the same string.
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

  /** Returns true if an item of a list, in the form in which the client returns it, satisfies the filter. */
  matches(item: object): boolean {
    return this.clauses.every((clause) => clause.some(({ params }) => satisfies(item, params)));
  }
}

function satisfies(item: object, { name, operator, value }: Property["params"]): boolean {
  const found = name
    .split(".")
    .reduce<unknown>((parent, key) => (parent as Record<string, unknown> | undefined)?.[camelKey(key)], item);
  switch (operator) {
    case "contains":
      return Array.isArray(found)
        ? [value].flat().every((wanted) => found.includes(wanted))
        : String(found).toLowerCase().includes(String(value).toLowerCase());
    case "eq":
    case "bool":
      return found === value;
    case "ne":
      return found !== value;
    case "gt":
      return Number(found) > Number(value);
    default:
      throw new ConfigurationError(`has the unknown operator ${operator}`, { field: ["filter"] });
  }
}

function property(name: string, operator: string, value: Scalar | readonly string[]): Filter {
  return new Filter([[{ type: "property", params: { name, operator, value } }]]);
}

/** Creates filters that compare the value of one field. */
export interface Comparisons {
  /**
   * Matches fields that contain a string or a list. A string is compared regardless of letter case. A field contains a
   * list if it contains all items of the list.
   */
  contains(value: string | readonly string[]): Filter;
  eq(value: Scalar): Filter;
  /** Matches items whose field has a different value, and items without the field. */
  ne(value: Scalar): Filter;
  gt(value: number): Filter;
  bool(value: boolean): Filter;
}

/**
 * Starts a condition on a field. A dot in the name selects a nested field.
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

/** Returns a filter for items that satisfy all of the filters. */
export function and(first: Filter, ...others: readonly Filter[]): Filter {
  return new Filter([first, ...others].flatMap((filter) => filter.clauses));
}

/**
 * Returns a filter for items that satisfy at least one of the filters. The function expands an inner `and`, because the
 * API supports only the nesting "all of (any of …)".
 * @throws ConfigurationError when the result has more clauses than a server accepts
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
