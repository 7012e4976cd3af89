import { z } from "zod";
import { InvalidError } from "../errors.ts";
import { checkTexts } from "../http/contract/validation.ts";
import { fieldOf, type Table } from "./table.ts";

type Scalar = string | number | boolean | null;

/** One condition of a filter. It compares a field with a value. */
export type Condition =
  | { readonly name: string; readonly operator: "contains"; readonly value: string | readonly Scalar[] }
  | { readonly name: string; readonly operator: "eq" | "ne"; readonly value: Scalar | readonly Scalar[] }
  | { readonly name: string; readonly operator: "bool"; readonly value: boolean }
  | { readonly name: string; readonly operator: "gt"; readonly value: number };

/** A group of conditions that one operator joins: `and` or `or`. */
export interface ConditionGroup {
  readonly joinedBy: "and" | "or";
  readonly conditions: readonly Condition[];
}

/**
 * Maximum number of items in a filter, and in each array of the filter. In practice, filters have fewer items. The
 * databases can process a filter with this number of items.
 */
const MAXIMUM_ITEMS = 100;

const item = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("property"),
    params: z.object({ name: z.string(), operator: z.string(), value: z.unknown() }),
  }),
  z.object({ type: z.literal("operator"), params: z.object({ name: z.string() }) }),
]);
const items = z.array(item).max(MAXIMUM_ITEMS);
// A JSON number can be infinite (1e400). The schema rejects infinite numbers, because the databases cannot compare them
// with a column.
const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);
const scalars = z.array(scalar).max(MAXIMUM_ITEMS);
const textOrScalars = z.union([z.string(), scalars]);
const scalarOrScalars = z.union([scalar, scalars]);
const SCALAR = "string, finite number, boolean or null";

const BOOLEANS: ReadonlyMap<unknown, boolean> = new Map<unknown, boolean>([
  [true, true],
  ["true", true],
  ["t", true],
  ["1", true],
  [false, false],
  ["false", false],
  ["f", false],
  ["0", false],
]);

const refusal = (what: string) => new InvalidError(`filter: ${what}`);

function decode(text: string): unknown {
  // Some clients do not percent-encode `+`. The query parser then turns it into a space (clients section 6).
  const base64 = text.replaceAll(" ", "+");
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(base64) || base64.length % 4 !== 0)
    throw refusal("must be padded base64");
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(base64, "base64")));
  } catch {
    throw refusal("must be base64 of JSON");
  }
}

/** Validates the value for an operator, so that invalid values never reach the database. */
function operand<T extends z.ZodType>(schema: T, value: unknown, takes: string): z.output<T> {
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw refusal(`${takes}, or an array of at most ${MAXIMUM_ITEMS} of ${SCALAR}`);
  checkTexts(parsed.data, "filter");
  return parsed.data;
}

/**
 * Returns the condition. Returns undefined if the operator is unknown, because unknown operators are ignored (rules
 * section 6).
 */
function conditionOf(name: string, operator: string, value: unknown): Condition | undefined {
  switch (operator) {
    case "contains":
      return { name, operator, value: operand(textOrScalars, value, "contains requires a string") };
    case "eq":
    case "ne":
      return { name, operator, value: operand(scalarOrScalars, value, `${operator} requires ${SCALAR}`) };
    case "bool": {
      const truth = BOOLEANS.get(value);
      if (truth === undefined)
        throw refusal("bool requires true, false, or one of the strings true, false, t, f, 1, 0");
      return { name, operator, value: truth };
    }
    case "gt": {
      const number = typeof value === "string" && /^[+-]?\d+$/.test(value) ? Number(value) : value;
      if (typeof number === "number" && Number.isFinite(number)) return { name, operator, value: number };
      throw refusal("gt requires a finite number, or a string with an integer");
    }
    default:
      return undefined;
  }
}

/**
 * Parses a filter into groups. A row must match all groups. The filter is a JSON array of properties, encoded as
 * base64. An operator ends each group of properties (rules section 6).
 * @param trailing operator for the last properties if no operator follows them
 * @throws InvalidError the filter is not JSON in base64, an item has an unknown format, or an operator does not accept
 *   its value
 */
export function parseFilter(text: string, trailing: ConditionGroup["joinedBy"]): ConditionGroup[] {
  const parsed = items.safeParse(decode(text));
  if (!parsed.success) throw refusal(`must be an array of at most ${MAXIMUM_ITEMS} properties and operators`);
  const groups: ConditionGroup[] = [];
  let open: Condition[] = [];
  const close = (joinedBy: ConditionGroup["joinedBy"]) => {
    if (open.length > 0) groups.push({ joinedBy, conditions: open });
    open = [];
  };
  for (const { type, params } of parsed.data) {
    if (type === "operator") {
      if (params.name === "and" || params.name === "or") close(params.name);
      continue;
    }
    const condition = conditionOf(params.name, params.operator, params.value);
    if (condition) open.push(condition);
  }
  close(trailing);
  return groups;
}

/**
 * Maximum number of comparisons in a filter. Each array item is a comparison. The number is limited, because the
 * databases limit the depth of an expression.
 */
const MAXIMUM_COMPARISONS = 100;
/**
 * Maximum number of expensive comparisons: searches in a text, and comparisons with a large text or a different table.
 */
const MAXIMUM_SEARCHES = 20;

/**
 * Checks the cost of a filter per row. The cost is limited, because on SQLite all requests wait for the result.
 * @throws InvalidError the filter has too many comparisons or searches, or searches a large text
 */
export function checkCost(table: Table, groups: readonly ConditionGroup[]): void {
  let comparisons = 0;
  let searches = 0;
  for (const { name, operator, value } of groups.flatMap((group): readonly Condition[] => group.conditions)) {
    const field = fieldOf(table, name);
    const inText = operator === "contains" && typeof value === "string";
    if (inText && field?.cost === "large") {
      throw new InvalidError(`filter: contains cannot search the text of ${name}; compare it with eq`);
    }
    const count = Array.isArray(value) ? value.length : 1;
    comparisons += count;
    if (inText || (field !== undefined && field.cost !== "column")) searches += count;
  }
  if (comparisons > MAXIMUM_COMPARISONS) {
    throw new InvalidError(
      `filter: a filter can compare at most ${MAXIMUM_COMPARISONS} values, including each item of an array`,
    );
  }
  if (searches > MAXIMUM_SEARCHES) {
    throw new InvalidError(
      `filter must contain at most ${MAXIMUM_SEARCHES} searches. A search is a comparison by the operator "contains" with a string, or ` +
        "a value that is compared with a list, a count or a large text",
    );
  }
}
