import { DriverAdapterError } from "@prisma/driver-adapter-utils";
import { Prisma } from "./generated/sqlite/client.ts";

/**
 * The kind of a database outage: the database cannot be written (disk full or read-only), does not respond, or is busy
 * with other requests. An outage is never caused by the failed request itself. The service recovers from an outage
 * without a restart.
 */
export type Outage = "unwritable" | "unreachable" | "busy";

/**
 * Error codes of SQLite and PostgreSQL, with the outage that each code indicates. The first matching entry applies. An
 * extended code of SQLite, such as `SQLITE_BUSY_SNAPSHOT`, begins with its primary code. Appendix A of PostgreSQL's
 * manual lists PostgreSQL's codes.
 */
const CODES: readonly (readonly [codes: RegExp, outage: Outage])[] = [
  [/^SQLITE_(BUSY|LOCKED)/, "busy"],
  [/^SQLITE_(CANTOPEN|PROTOCOL|IOERR_(READ|SHORT_READ|LOCK|ACCESS))/, "unreachable"],
  [/^SQLITE_(FULL|READONLY|PERM|IOERR)/, "unwritable"],
  // Disk full, disk error, or read-only transaction (on a standby server, or on a server that is becoming a standby
  // server).
  [/^(53100|58030|25006)$/, "unwritable"],
  // Lock not available, statement or idle transaction timed out, or out of memory.
  [/^(55P03|57014|25P03|53200)$/, "busy"],
  // Connection failed, too many connections, server shutting down, crashed or starting, database does not exist, or
  // login rejected.
  [/^(08...|53300|57P0[1-5]|3D000|28000|28P01)$/, "unreachable"],
];

/** The values of `kind` in those errors of Prisma's adapter that have no database error code. */
const KINDS: Readonly<Record<string, Outage>> = {
  DatabaseNotReachable: "unreachable",
  ConnectionClosed: "unreachable",
  SocketTimeout: "unreachable",
  TlsConnectionError: "unreachable",
};

/**
 * Prisma's own codes for timeouts: no connection or transaction was available in time, or a transaction did not end in
 * time.
 */
const PRISMA: Readonly<Record<string, Outage>> = { P2024: "busy", P2028: "busy" };

/** Messages of `pg` (the PostgreSQL driver) for connection errors that have no code. */
const CONNECTION =
  /^(Connection terminated|timeout (exceeded when trying to connect|expired)|Client (was closed|has encountered)|Cannot use a pool after)/;
/** Error codes of the operating system that connection errors of `pg` contain. */
const NETWORK =
  /^(ECONN(REFUSED|RESET|ABORTED)|EPIPE|ETIMEDOUT|E(HOST|NET)(UNREACH|DOWN)|ENOTFOUND|EAI_AGAIN)$/;

/** Returns the outage that caused an error. Returns undefined if no outage caused the error. */
export function outageOf(error: unknown): Outage | undefined {
  const { code, cause } = adapterErrorOf(error) ?? {};
  if (cause) return CODES.find(([codes]) => code !== undefined && codes.test(code))?.[1] ?? KINDS[cause.kind];
  if (error instanceof Prisma.PrismaClientKnownRequestError) return PRISMA[error.code];
  return error instanceof Error && isOfConnection(error) ? "unreachable" : undefined;
}

/** Error codes for invalid values in a statement: data exceptions, violated constraints, exceeded limits. */
const VALUES = /^(2[23]...|54...|SQLITE_(CONSTRAINT|TOOBIG|MISMATCH|RANGE).*)$/;

/**
 * Returns true if invalid values in a statement caused an error, or if the error occurred before the database received
 * a statement. Such an error occurs again when the same work is retried.
 */
export function isOfValues(error: unknown): boolean {
  const code = adapterErrorOf(error)?.code;
  if (code !== undefined) return VALUES.test(code);
  return error instanceof TypeError || error instanceof RangeError;
}

/** Returns the database adapter's error that caused a statement to fail. Unwraps the error if Prisma wrapped it. */
export function adapterErrorOf(
  error: unknown,
): { readonly code: string | undefined; readonly cause: DriverAdapterError["cause"] } | undefined {
  const inner =
    error instanceof Prisma.PrismaClientKnownRequestError ? error.meta?.driverAdapterError : error;
  if (!(inner instanceof DriverAdapterError)) return undefined;
  return { code: inner.cause.originalCode, cause: inner.cause };
}

/**
 * Returns true for a connection error. If a host has several addresses, `pg` throws an aggregate error that has the
 * error code of one of the addresses.
 */
function isOfConnection(error: Error): boolean {
  if (!("code" in error)) return CONNECTION.test(error.message);
  // The file of the Unix socket does not exist.
  if (error.code === "ENOENT") return "syscall" in error && error.syscall === "connect";
  return NETWORK.test(String(error.code));
}
