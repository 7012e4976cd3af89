import { type providerOf, type Sql, sql } from "../db/sql/sql.ts";
import type { Condition, ConditionGroup } from "./parseFilter.ts";
import { type Field, fieldOf, type ListField, type Table, type ValueField } from "./table.ts";

/** The kind of the database. It determines which SQL functions a condition can use. */
type Provider = ReturnType<typeof providerOf>;

/** Returns SQL that is true for rows that match all groups of a filter. */
export function filterSql(provider: Provider, table: Table, groups: readonly ConditionGroup[]): Sql {
  const parts = groups.map(({ joinedBy, conditions }) => {
    const comparisons = conditions.map((condition) => conditionSql(provider, table, condition));
    return sql`(${sql.join(comparisons, joinedBy === "and" ? " AND " : " OR ")})`;
  });
  return parts.length === 0 ? sql.true : sql.join(parts, " AND ");
}

function conditionSql(provider: Provider, table: Table, condition: Condition): Sql {
  const field = fieldOf(table, condition.name);
  // If the field is unknown, the operator `ne` is always true, and all other operators are always false.
  if (field === undefined) return condition.operator === "ne" ? sql.true : sql.false;
  switch (condition.operator) {
    case "contains":
      return typeof condition.value === "string"
        ? substring(provider, field, condition.value)
        : holdsAll(field, condition.value);
    case "eq":
      return equal(field, condition.value);
    case "ne":
      return sql`NOT (${equal(field, condition.value)})`;
    case "bool":
      return field.type === "boolean" ? equal(field, condition.value) : sql.false;
    case "gt":
      return field.type === "number"
        ? sql`${real(field.value)} > ${real(sql`${condition.value}`)}`
        : sql.false;
  }
}

// Converts a number to an SQL type that both databases can compare with fractions, and with numbers outside the range
// of an integer column.
const real = (value: Sql): Sql => sql`CAST(${value} AS DOUBLE PRECISION)`;

/**
 * Returns SQL that is true if a text contains the string `part`. Ignores case (on SQLite only for the letters a to z).
 * On SQLite, all requests wait for the result, so the SQL uses the function INSTR, which is fast. LIKE would take a
 * hundred times as long if most of `part` occurs at each position of the text. On PostgreSQL, only LIKE can use an
 * index.
 */
export function containsSql(provider: Provider, text: Sql, part: string): Sql {
  if (provider === "sqlite") return sql`INSTR(LOWER(${text}), LOWER(${part})) > 0`;
  const pattern = `%${part.replaceAll(/[\\%_]/g, "\\$&")}%`;
  return sql`LOWER(${text}) LIKE LOWER(${pattern}) ESCAPE '\\'`;
}

function substring(provider: Provider, field: Field, needle: string): Sql {
  if (field.type !== "text" && field.type !== "list") return sql.false;
  const text = field.type === "list" ? field.item : field.value;
  const present = field.type === "list" ? sql.true : sql`${text} IS NOT NULL`;
  const contained = needle === "" ? present : sql`(${present} AND ${containsSql(provider, text, needle)})`;
  return field.type === "list" ? field.some(contained) : contained;
}

function holdsAll(field: Field, values: readonly unknown[]): Sql {
  if (values.length === 0) return sql.false;
  const one = (value: unknown): Sql => {
    if (field.type !== "list") return equal(field, value);
    return typeof value === "string" ? field.some(sql`${field.item} = ${value}`) : sql.false;
  };
  return sql`(${sql.join(values.map(one), " AND ")})`;
}

/**
 * Returns a comparison that is never null, so that it can be negated with NOT. A value is never equal if its type
 * differs from the type of the field.
 */
function equal(field: Field, value: unknown): Sql {
  if (field.type === "list") return listEqual(field, value);
  // A boolean column is never null, so the column itself can be the condition. Without a comparison, the database can
  // use an index.
  if (field.type === "boolean" && value === true) return field.value;
  const same = comparable(field, value);
  return same ? sql`(${field.value} IS NOT NULL AND ${same})` : sql.false;
}

function comparable(field: ValueField, value: unknown): Sql | undefined {
  switch (field.type) {
    case "text":
      return typeof value === "string" ? sql`${field.value} = ${value}` : undefined;
    case "boolean":
      return typeof value === "boolean" ? sql`${field.value} = ${value}` : undefined;
    case "number":
      return typeof value === "number" ? sql`${real(field.value)} = ${real(sql`${value}`)}` : undefined;
    case "date": {
      // Times are compared as strings in wire format. Therefore, a filter value equals a time only if the strings are
      // identical.
      const time = typeof value === "string" ? new Date(value) : undefined;
      return time && !Number.isNaN(time.getTime()) && time.toISOString() === value
        ? sql`${field.value} = ${time}`
        : undefined;
    }
  }
}

/**
 * Compares a list with a value. A string equals a list that contains the string, as in the document store that the
 * rules describe. An array equals a list that has the same items.
 */
function listEqual(field: ListField, value: unknown): Sql {
  if (typeof value === "string") return field.some(sql`${field.item} = ${value}`);
  if (!Array.isArray(value)) return sql.false;
  const size = sql`${field.size} = ${value.length}`;
  return value.length === 0 ? size : sql`(${size} AND ${holdsAll(field, value)})`;
}
