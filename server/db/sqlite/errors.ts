import { DriverAdapterError, type MappedError } from "@prisma/driver-adapter-utils";
import Sqlite from "better-sqlite3";

/** The columns that SQLite names after `constraint failed: `, as `Table.column, Table.column`. */
function constrained(message: string): { fields: string[]; table: string | undefined } | undefined {
  const columns = message.split("constraint failed: ")[1]?.split(", ");
  if (columns === undefined) return undefined;
  return {
    fields: columns.map((column) => column.slice(column.lastIndexOf(".") + 1)),
    table: columns[0]?.split(".")[0],
  };
}

function mapped(code: string, message: string): MappedError {
  const columns = constrained(message);
  const constraint = columns && { fields: columns.fields };
  switch (code) {
    case "SQLITE_CONSTRAINT_UNIQUE":
    case "SQLITE_CONSTRAINT_PRIMARYKEY":
      return { kind: "UniqueConstraintViolation", ...(constraint && { constraint }), ...tableOf(columns) };
    case "SQLITE_CONSTRAINT_NOTNULL":
      return { kind: "NullConstraintViolation", ...(constraint && { constraint }) };
    case "SQLITE_CONSTRAINT_FOREIGNKEY":
    case "SQLITE_CONSTRAINT_TRIGGER":
      return { kind: "ForeignKeyConstraintViolation", constraint: { foreignKey: {} } };
  }
  if (code.startsWith("SQLITE_BUSY")) return { kind: "SocketTimeout" };
  const table = /^no such table: (.*)/.exec(message)?.[1];
  if (table !== undefined) return { kind: "TableDoesNotExist", table };
  const column = /(?:no such column: |has no column named )(.*)/.exec(message)?.[1];
  if (column !== undefined) return { kind: "ColumnNotFound", column };
  return { kind: "sqlite", extendedCode: 1, message: `${code}: ${message}` };
}

const tableOf = (columns: { table: string | undefined } | undefined) =>
  columns?.table === undefined ? {} : { table: columns.table };

/** Converts a SQLite error to the error that Prisma expects (P2002, P2003 and so on); other errors stay as they are. */
export function toPrismaError(error: unknown): unknown {
  if (!(error instanceof Sqlite.SqliteError)) return error;
  return new DriverAdapterError({
    originalCode: error.code,
    originalMessage: error.message,
    ...mapped(error.code, error.message),
  });
}
