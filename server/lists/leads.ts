import type { Condition, ConditionGroup } from "./parseFilter.ts";
import { fieldOf, type Lead, type Table } from "./table.ts";

/** A lead to all rows that a filter chooses. */
interface Found {
  readonly lead: Lead;
  /** What of the filter is to be asked of the rows that it leads to. */
  readonly groups: readonly ConditionGroup[];
}

/** Finds a lead; undefined where no index leads to a condition that all of the filter's rows meet. */
export function findLead(table: Table, groups: readonly ConditionGroup[]): Found | undefined {
  const binding = groups.filter(({ joinedBy, conditions }) => joinedBy === "and" || conditions.length === 1);
  for (const condition of binding.flatMap((group) => group.conditions)) {
    const lead = leadTo(table, condition);
    if (lead) return { lead, groups: isExact(condition) ? without(groups, condition) : groups };
  }
  return undefined;
}

function leadTo(table: Table, { name, operator, value }: Condition): Lead | undefined {
  if (operator !== "contains" && operator !== "eq") return undefined;
  const field = fieldOf(table, name);
  if (field?.type === "list") {
    // The text that a list contains is a part of an item.
    const item = Array.isArray(value) ? value[0] : operator === "eq" ? value : undefined;
    return typeof item === "string" ? field.lead?.(item) : undefined;
  }
  return operator === "contains" && typeof value === "string" ? field?.lead?.(value) : undefined;
}

/** True for a condition of a list that a single item meets; an index of texts leads to more than it should. */
const isExact = ({ operator, value }: Condition): boolean =>
  operator === "eq" ? typeof value === "string" : Array.isArray(value) && value.length === 1;

const without = (groups: readonly ConditionGroup[], condition: Condition): ConditionGroup[] =>
  groups
    .map((group) => ({ ...group, conditions: group.conditions.filter((other) => other !== condition) }))
    .filter(({ conditions }) => conditions.length > 0);
