import { type ArgType, type ColumnType, ColumnTypeEnum } from "@prisma/driver-adapter-utils";

/** Column types that Prisma's migrations declare on SQLite; the type of any other column comes from its values. */
const declared: Readonly<Record<string, ColumnType>> = {
  TEXT: ColumnTypeEnum.Text,
  INTEGER: ColumnTypeEnum.Int32,
  BIGINT: ColumnTypeEnum.Int64,
  REAL: ColumnTypeEnum.Double,
  DECIMAL: ColumnTypeEnum.Numeric,
  BOOLEAN: ColumnTypeEnum.Boolean,
  DATETIME: ColumnTypeEnum.DateTime,
  BLOB: ColumnTypeEnum.Bytes,
  JSONB: ColumnTypeEnum.Json,
};

function typeOfValue(value: unknown): ColumnType {
  switch (typeof value) {
    case "string":
      return ColumnTypeEnum.Text;
    case "bigint":
      return ColumnTypeEnum.Int64;
    case "number":
      return ColumnTypeEnum.UnknownNumber;
    default:
      return ColumnTypeEnum.Bytes;
  }
}

/**
 * The type of each column: as declared, else (a count, an expression) that of its first value that is not null.
 * @param declarations declared types of the columns, null for an expression
 */
export function columnTypes(
  declarations: readonly (string | null)[],
  rows: readonly (readonly unknown[])[],
): ColumnType[] {
  return declarations.map((declaration, index) => {
    const type = declared[declaration?.toUpperCase() ?? ""];
    if (type !== undefined) return type;
    const row = rows.find((candidate) => candidate[index] !== null);
    return row === undefined ? ColumnTypeEnum.Int32 : typeOfValue(row[index]);
  });
}

/** Converts a value to one that SQLite accepts. Times become ISO 8601 text in UTC, which sorts as time does. */
export function toSqlite(value: unknown, type: ArgType | undefined): unknown {
  if (typeof value === "boolean") return value ? 1 : 0;
  if (value instanceof Date) return timeText(value);
  if (typeof value !== "string") return value;
  switch (type?.scalarType) {
    case "int":
      return Number.parseInt(value, 10);
    case "bigint":
      return BigInt(value);
    case "float":
    case "decimal":
      return Number.parseFloat(value);
    case "datetime":
      return timeText(new Date(value));
    case "bytes":
      return Buffer.from(value, "base64");
    default:
      return value;
  }
}

const timeText = (time: Date): string => time.toISOString().replace("Z", "+00:00");
