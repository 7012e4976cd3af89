// An implementation of the filter rules (section 6) in memory. It applies filters to the items that the service
// returns.

/** An item of a list, in the JSON format of the service. */
export type Wire = Record<string, unknown>;

/** An element of a list request's `filter` parameter: a comparison of a property, or a boolean operator. */
export type Item = { type: string; params: { name: string; operator?: string; value?: unknown } };

/**
 * Returns the field with a dotted name. If a part of the name refers to a list of objects, returns the fields of all
 * objects.
 */
export const fieldOf = (item: Wire, name: string): unknown =>
  name
    .split(".")
    .reduce<unknown>(
      (value, key) =>
        Array.isArray(value) ? value.map((one) => (one as Wire)[key]) : (value as Wire | undefined)?.[key],
      item,
    );

/** Fields with times, which the service returns as texts. */
const TIMES = ["last_seen", "created_at", "status_updated_at", "status_update_at"];

const TRUE = [true, "true", "t", "1"];

function holds(item: Wire, { name, operator: comparison, value }: Item["params"]): boolean {
  const field = fieldOf(item, name);
  const values = Array.isArray(field) ? field : [field];
  const equal = (other: unknown) =>
    Array.isArray(field) && Array.isArray(other)
      ? field.length === other.length && field.every((entry) => other.includes(entry))
      : values.includes(other) && field !== undefined;
  switch (comparison) {
    case "contains":
      if (Array.isArray(value))
        return field !== undefined && value.length > 0 && value.every((entry) => values.includes(entry));
      // The operator `contains` never matches a time, although JSON represents times as strings.
      if (TIMES.includes(name)) return false;
      return values.some(
        (entry) => typeof entry === "string" && entry.toLowerCase().includes(String(value).toLowerCase()),
      );
    case "eq":
      return equal(value);
    case "ne":
      return !equal(value);
    case "bool":
      return typeof field === "boolean" && field === TRUE.includes(value as never);
    case "gt":
      return typeof field === "number" && field > Number(value);
    default:
      throw new Error(`the model does not support ${comparison}`);
  }
}

/** Returns true if the item matches a filter. */
export function matches(item: Wire, items: readonly Item[], trailing: "and" | "or"): boolean {
  let open: Item["params"][] = [];
  const results: boolean[] = [];
  const close = (joined: string) => {
    if (open.length > 0) {
      results.push(
        joined === "and" ? open.every((one) => holds(item, one)) : open.some((one) => holds(item, one)),
      );
    }
    open = [];
  };
  for (const { type, params } of items) {
    if (type === "property") {
      if (["contains", "eq", "ne", "bool", "gt"].includes(params.operator ?? "")) open.push(params);
    } else if (params.name === "and" || params.name === "or") close(params.name);
  }
  close(trailing);
  return results.every(Boolean);
}
