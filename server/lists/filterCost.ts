import { InvalidError } from "../errors.ts";
import type { Condition, ConditionGroup } from "./parseFilter.ts";
import { fieldOf, type Table } from "./table.ts";

/** Maximum comparisons of a filter, counting an array's items; the databases allow no deeper expressions either. */
const MAXIMUM_COMPARISONS = 100;
/** Maximum number of expensive comparisons: searches in text, and look-ups of large texts and other tables. */
const MAXIMUM_SEARCHES = 20;

/**
 * Limits a filter's cost per row. On SQLite the whole service waits for the result.
 * @throws InvalidError too many comparisons or searches, or a search in a text that is too large for it
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
      `filter: must compare at most ${MAXIMUM_COMPARISONS} values, those of arrays counted one by one`,
    );
  }
  if (searches > MAXIMUM_SEARCHES) {
    throw new InvalidError(
      `filter: must search at most ${MAXIMUM_SEARCHES} times: contains with a text counts, and each value ` +
        "that is compared with a list, a count or a large text",
    );
  }
}
