import {
  type ArgType,
  type ColumnType,
  ColumnTypeEnum,
  DriverAdapterError,
  type IsolationLevel,
  type MappedError,
  type SqlDriverAdapter,
  type SqlDriverAdapterFactory,
  type SqlQuery,
  type SqlQueryable,
  type SqlResultSet,
  type Transaction,
} from "@prisma/driver-adapter-utils";
import Sqlite from "better-sqlite3";
import { Mutex } from "./Mutex.ts";

const adapterName = "gatehouse-better-sqlite3";

/**
 * Maximum number of cached prepared statements. Prisma generates the same SQL for the same call, so the cache contains
 * almost all statements that run.
 */
const preparedStatements = 200;

/**
 * Maximum number of values in a cached statement. A statement with more values contains a list, and its SQL differs for
 * each length of the list. The cache would save little time for such statements. A statement with 250 values uses 60 kB
 * of memory, and can be prepared in 0.2 ms.
 */
const mostValues = 120;

/**
 * Names and declared types of a statement's columns. They never change while the service runs, because the tables do
 * not change.
 */
interface Columns {
  readonly names: string[];
  readonly declarations: (string | null)[];
}

/** A connection to the SQLite database, with its prepared statements. All calls are synchronous. */
class SqliteConnection {
  readonly sqlite: Sqlite.Database;
  readonly #statements = new Map<string, Sqlite.Statement>();
  // Cache of the columns of each statement. Reading the columns takes twice as long as finding a row.
  readonly #columns = new WeakMap<Sqlite.Statement, Columns>();

  constructor(sqlite: Sqlite.Database) {
    this.sqlite = sqlite;
  }

  query(query: SqlQuery): SqlResultSet {
    return this.#run(query, (statement, values) => {
      if (!statement.reader) {
        statement.run(values);
        return { columnNames: [], columnTypes: [], rows: [] };
      }
      const rows = statement.raw(true).all(values) as unknown[][];
      const { names, declarations } = this.#columnsOf(statement);
      return { columnNames: names, columnTypes: columnTypes(declarations, rows), rows };
    });
  }

  #columnsOf(statement: Sqlite.Statement): Columns {
    let columns = this.#columns.get(statement);
    if (columns === undefined) {
      const described = statement.columns();
      columns = { names: described.map(({ name }) => name), declarations: described.map(({ type }) => type) };
      this.#columns.set(statement, columns);
    }
    return columns;
  }

  /** Executes a statement, and returns the number of changed rows. */
  execute(query: SqlQuery): number {
    return this.#run(query, (statement, values) =>
      statement.reader ? statement.all(values).length : statement.run(values).changes,
    );
  }

  exec(script: string): void {
    try {
      this.sqlite.exec(script);
    } catch (error) {
      throw toPrismaError(error);
    }
  }

  #run<T>(query: SqlQuery, use: (statement: Sqlite.Statement, values: unknown[]) => T): T {
    try {
      const values = query.args.map((value, index) => toSqlite(value, query.argTypes[index]));
      const statement =
        values.length > mostValues ? this.sqlite.prepare(query.sql) : this.#prepared(query.sql);
      return use(statement, values);
    } catch (error) {
      throw toPrismaError(error);
    }
  }

  /**
   * Returns the prepared statement for SQL. If the cache is full, the new statement replaces the least recently used
   * statement.
   */
  #prepared(sql: string): Sqlite.Statement {
    const known = this.#statements.get(sql);
    const statement = known ?? this.sqlite.prepare(sql);
    if (known) this.#statements.delete(sql);
    else if (this.#statements.size >= preparedStatements) {
      for (const oldest of this.#statements.keys()) {
        this.#statements.delete(oldest);
        break;
      }
    }
    this.#statements.set(sql, statement);
    return statement;
  }
}

/**
 * An open transaction. It holds the mutex, so no statement from outside the transaction runs between its statements.
 */
class SqliteTransaction implements Transaction {
  readonly provider = "sqlite";
  readonly adapterName = adapterName;
  // With this option, Prisma calls the methods below for COMMIT and ROLLBACK, and does not send these statements
  // itself.
  readonly options = { usePhantomQuery: true };
  readonly #connection: SqliteConnection;
  readonly #release: () => void;
  #ended = false;

  constructor(connection: SqliteConnection, release: () => void) {
    this.#connection = connection;
    this.#release = release;
  }

  async queryRaw(query: SqlQuery): Promise<SqlResultSet> {
    return this.#open().query(query);
  }

  async executeRaw(query: SqlQuery): Promise<number> {
    return this.#open().execute(query);
  }

  async commit(): Promise<void> {
    const connection = this.#open();
    try {
      connection.exec("COMMIT");
    } finally {
      // If a COMMIT fails, for example because the disk is full, the transaction stays open. It is rolled back, so that
      // the next transaction does not continue it.
      this.#end();
    }
  }

  async rollback(): Promise<void> {
    this.#end();
  }

  async createSavepoint(name: string): Promise<void> {
    this.#open().exec(`SAVEPOINT ${name}`);
  }

  async rollbackToSavepoint(name: string): Promise<void> {
    this.#open().exec(`ROLLBACK TO ${name}`);
  }

  async releaseSavepoint(name: string): Promise<void> {
    this.#open().exec(`RELEASE SAVEPOINT ${name}`);
  }

  /**
   * Returns the connection while the transaction is open. A statement after the end of this transaction would become
   * part of a different transaction.
   * @throws DriverAdapterError the transaction has ended
   */
  #open(): SqliteConnection {
    if (!this.#ended) return this.#connection;
    throw new DriverAdapterError({
      kind: "TransactionAlreadyClosed",
      cause: "the transaction has been committed or rolled back",
    });
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    try {
      // After some errors, SQLite rolls back the transaction itself. In that case, no transaction is open here.
      if (this.#connection.sqlite.inTransaction) this.#connection.exec("ROLLBACK");
    } finally {
      this.#release();
    }
  }
}

/**
 * Executes statements and transactions on one connection. A statement outside a transaction waits until the open
 * transaction ends, because it would otherwise become part of that transaction. Waiting statements run before waiting
 * transactions.
 */
class SqliteAdapter implements SqlDriverAdapter, SqlQueryable {
  readonly provider = "sqlite";
  readonly adapterName = adapterName;
  readonly #connection: SqliteConnection;
  readonly #mutex = new Mutex();

  constructor(sqlite: Sqlite.Database) {
    this.#connection = new SqliteConnection(sqlite);
  }

  queryRaw(query: SqlQuery): Promise<SqlResultSet> {
    return this.#runExclusively(() => this.#connection.query(query));
  }

  executeRaw(query: SqlQuery): Promise<number> {
    return this.#runExclusively(() => this.#connection.execute(query));
  }

  executeScript(script: string): Promise<void> {
    return this.#runExclusively(() => this.#connection.exec(script));
  }

  async startTransaction(isolationLevel?: IsolationLevel): Promise<Transaction> {
    if (isolationLevel !== undefined && isolationLevel !== "SERIALIZABLE") {
      throw new DriverAdapterError({ kind: "InvalidIsolationLevel", level: isolationLevel });
    }
    const release = await this.#mutex.acquire();
    try {
      this.#connection.exec("BEGIN IMMEDIATE");
    } catch (error) {
      release();
      throw error;
    }
    return new SqliteTransaction(this.#connection, release);
  }

  async dispose(): Promise<void> {
    this.#connection.sqlite.close();
  }

  async #runExclusively<T>(work: () => T): Promise<T> {
    const release = await this.#mutex.acquire(true);
    try {
      return work();
    } finally {
      release();
    }
  }
}

/**
 * Creates a Prisma driver adapter for an open SQLite connection. The service has its own adapter, because no other
 * adapter meets all requirements. The table compares the adapters with Prisma 7.10. The tests in `test/server/sqlite`
 * verify the reasons for the choice.
 *
 * | Adapter | Installation | Acknowledged writes | Memory after 100,000 writes |
 * |---|---|---|---|
 * | this adapter, over better-sqlite3 13 | 1 s, prebuilt for eight platforms | kept | 240 MB |
 * | @prisma/adapter-better-sqlite3 | 2 min: compiles better-sqlite3 12 | lost when another request rolls back | |
 * | @prisma/adapter-libsql | 3 s, prebuilt | kept | 2,390 MB; a connection per transaction, without our pragmas |
 * | this adapter, over node:sqlite | none | kept | about the same, but experimental in Node 22 |
 */
export function sqliteAdapter(sqlite: Sqlite.Database): SqlDriverAdapterFactory {
  return { provider: "sqlite", adapterName, connect: async () => new SqliteAdapter(sqlite) };
}

function mapped(code: string, message: string): MappedError {
  switch (code) {
    case "SQLITE_CONSTRAINT_UNIQUE":
    case "SQLITE_CONSTRAINT_PRIMARYKEY":
      return { kind: "UniqueConstraintViolation" };
    case "SQLITE_CONSTRAINT_NOTNULL":
      return { kind: "NullConstraintViolation" };
    case "SQLITE_CONSTRAINT_FOREIGNKEY":
    case "SQLITE_CONSTRAINT_TRIGGER":
      return { kind: "ForeignKeyConstraintViolation", constraint: { foreignKey: {} } };
  }
  if (code.startsWith("SQLITE_BUSY")) return { kind: "SocketTimeout" };
  return { kind: "sqlite", extendedCode: 1, message: `${code}: ${message}` };
}

/**
 * Converts a SQLite error to the error that Prisma expects (P2002, P2003 and so on). Returns other errors unchanged.
 */
function toPrismaError(error: unknown): unknown {
  if (!(error instanceof Sqlite.SqliteError)) return error;
  return new DriverAdapterError({
    originalCode: error.code,
    originalMessage: error.message,
    ...mapped(error.code, error.message),
  });
}

/**
 * Column types that Prisma's migrations declare on SQLite. The type of every other column is derived from its values.
 */
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
 * Returns the type of each column. This is the declared type if there is one. For a count or an expression, it is the
 * type of the first value that is not null.
 * @param declarations declared types of the columns; null for an expression
 */
function columnTypes(
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

/**
 * Converts a value to a value that SQLite accepts. Times become ISO 8601 strings in UTC, which sort chronologically.
 */
function toSqlite(value: unknown, type: ArgType | undefined): unknown {
  if (typeof value === "boolean") return value ? 1 : 0;
  if (value instanceof Date) return sqliteTime(value);
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
      return sqliteTime(new Date(value));
    case "bytes":
      return Buffer.from(value, "base64");
    default:
      return value;
  }
}

/** Returns a time in the format that SQLite stores. */
export const sqliteTime = (time: Date): string => time.toISOString().replace("Z", "+00:00");
