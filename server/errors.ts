import { Prisma } from "./db/generated/sqlite/client.ts";
import { adapterErrorOf, type Outage, outageOf } from "./db/outage.ts";

/** An error with a status of its own; its message goes to the caller unchanged. */
export abstract class ServiceError extends Error {
  /** Headers of the error response. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.headers = headers;
  }
}

/**
 * 400: a value is not allowed, or the state of the object forbids the request. A value of the wrong JSON type is a
 * {@link WrongTypeError}; invalid fields of a user are an {@link InvalidFieldsError}.
 */
export class InvalidError extends ServiceError {}
/** 401: no credential, or a wrong one. A valid credential without the permission is a {@link ForbiddenError}. */
export class UnauthenticatedError extends ServiceError {}
/** 402: billing refuses, or a limit of the cloud edition. A limit that the operator has set is a {@link ForbiddenError}. */
export class PaymentError extends ServiceError {}
/** 403: the caller may not do this, or a limit is reached. A request nobody may make now is an {@link InvalidError}. */
export class ForbiddenError extends ServiceError {}
/** 404: the caller's namespace has no such object; the same answer is given for an object of another namespace. */
export class NotFoundError extends ServiceError {}
/** 409: an object with that name or key exists. Values of a user's fields are a {@link TakenFieldsError}. */
export class ConflictError extends ServiceError {}
/** 415: the service does not read bodies of that content type. A body that is not JSON is a {@link WrongTypeError}. */
export class ContentTypeError extends ServiceError {}
/** 422: the body is not JSON, or a value has the wrong JSON type. A value out of range is an {@link InvalidError}. */
export class WrongTypeError extends ServiceError {}
/** 412: the object has another revision than `If-Match` names. An object that is gone is a {@link NotFoundError}. */
export class PreconditionError extends ServiceError {}
/**
 * 503: the service has too much to do, and the request has changed nothing. A caller who sends too many requests gets a
 * {@link RateLimitedError}.
 */
export class BusyError extends ServiceError {}
/** 501: this instance or this version does not support the request. */
export class NotImplementedError extends ServiceError {}
/** 500: the engine behind a connector is not connected. A connector that does not exist is a {@link NotFoundError}. */
export class NotConnectedError extends ServiceError {}
/** 429: too many wrong passwords or codes. Too many requests are a {@link RateLimitedError}. */
export class LockedOutError extends ServiceError {}
/** 429: too many requests from the address or for the account. Too many wrong passwords are a {@link LockedOutError}. */
export class RateLimitedError extends ServiceError {}

/**
 * 424: the payment gateway failed, or refuses what a customer pays with. Nothing has changed here, and the request may be
 * sent again. Something that must be paid first is a {@link PaymentError}.
 */
export class PaymentGatewayError extends ServiceError {
  /** Machine-readable cause of the failure (models section 12). */
  readonly code: string;

  /** @param cause the gateway's own error, for the log */
  constructor(code: string, cause?: unknown) {
    super(`the payment gateway failed: ${code}`);
    this.code = code;
    this.cause = cause;
  }
}

/** Invalid or taken fields of a user; the response's body is an array of their names (rules section 8). */
abstract class FieldsError extends ServiceError {
  readonly fields: readonly string[];

  constructor(fields: readonly string[]) {
    super(fields.join(", "));
    this.fields = fields;
  }
}
/** 400: these fields have values that are not allowed. Values that another user has are a {@link TakenFieldsError}. */
export class InvalidFieldsError extends FieldsError {}
/** 409: another user has the value of each of these fields. */
export class TakenFieldsError extends FieldsError {}

type ErrorClass = abstract new (...args: never[]) => ServiceError;

/** The one table from error class to status (rules section 8). */
const STATUS: ReadonlyMap<ErrorClass, number> = new Map<ErrorClass, number>([
  [InvalidError, 400],
  [InvalidFieldsError, 400],
  [UnauthenticatedError, 401],
  [PaymentError, 402],
  [ForbiddenError, 403],
  [NotFoundError, 404],
  [ConflictError, 409],
  [TakenFieldsError, 409],
  [PreconditionError, 412],
  [ContentTypeError, 415],
  [WrongTypeError, 422],
  [PaymentGatewayError, 424],
  [LockedOutError, 429],
  [RateLimitedError, 429],
  [NotImplementedError, 501],
  // The list of operations says 500 here; clients do not know 502.
  [NotConnectedError, 500],
  [BusyError, 503],
]);

/** Prisma's error codes of races: the state changed between the check and the write. */
const DATABASE_ERRORS: Readonly<Record<string, { readonly status: number; readonly message: string }>> = {
  P2002: { status: 409, message: "already exists" },
  P2003: { status: 404, message: "what the request refers to does not exist any more" },
  P2025: { status: 404, message: "not found" },
};

/** The codes for errors of the adapters, which statements without Prisma's client fail with. */
const CODES: Readonly<Record<string, string>> = {
  UniqueConstraintViolation: "P2002",
  ForeignKeyConstraintViolation: "P2003",
};

/** The response while the database fails, with the seconds after which to retry; the log has the cause. */
const OUTAGES: Readonly<Record<Outage, { readonly message: string; readonly retryAfter: number }>> = {
  busy: { message: "the database is busy, try again", retryAfter: 1 },
  unwritable: { message: "the database cannot be written now, try again later", retryAfter: 5 },
  unreachable: { message: "the database cannot be reached now, try again later", retryAfter: 5 },
};

/** The response to a request that failed. */
interface ErrorAnswer {
  readonly status: number;
  readonly body: { readonly message: string; readonly code?: string } | readonly string[];
  readonly headers: Readonly<Record<string, string>>;
}

/** The status of an error's class, or else of its nearest base class. */
function statusOf(error: ServiceError): number | undefined {
  for (let type: unknown = error.constructor; type instanceof Function; type = Object.getPrototypeOf(type)) {
    const status = STATUS.get(type as unknown as ErrorClass);
    if (status !== undefined) return status;
  }
  return undefined;
}

function bodyOf(error: ServiceError): ErrorAnswer["body"] {
  if (error instanceof FieldsError) return error.fields;
  const { message } = error;
  return error instanceof PaymentGatewayError ? { message, code: error.code } : { message };
}

/** The response to an error; undefined for an unexpected one, whose message only the log may hold. */
export function answerTo(error: unknown): ErrorAnswer | undefined {
  if (error instanceof ServiceError) {
    const status = statusOf(error);
    if (status === undefined) return undefined;
    return { status, body: bodyOf(error), headers: error.headers };
  }
  if (isWriteConflict(error)) return unavailable("too many changes at once, try again", 1);
  const outage = outageOf(error);
  if (outage) return unavailable(OUTAGES[outage].message, OUTAGES[outage].retryAfter);
  const code = databaseCodeOf(error);
  if (code !== undefined) {
    const known = DATABASE_ERRORS[code];
    return known && { status: known.status, body: { message: known.message }, headers: {} };
  }
  // Fastify's own refusals (body too large, bad content length) reveal nothing internal.
  if (isFastifyRefusal(error)) {
    return { status: error.statusCode, body: { message: error.message }, headers: {} };
  }
  return undefined;
}

/** @param retryAfter in seconds */
const unavailable = (message: string, retryAfter: number): ErrorAnswer => ({
  status: 503,
  body: { message },
  headers: { "Retry-After": String(retryAfter) },
});

/** Prisma's code of a database error, also of one that Prisma's client has not wrapped. */
const databaseCodeOf = (error: unknown): string | undefined =>
  isDatabaseError(error) ? error.code : CODES[adapterErrorOf(error)?.cause.kind ?? ""];

/** True for a database error with one of Prisma's codes, or with exactly the given code. */
export function isDatabaseError(
  error: unknown,
  code?: string,
): error is Prisma.PrismaClientKnownRequestError {
  return error instanceof Prisma.PrismaClientKnownRequestError && (code === undefined || error.code === code);
}

/** True when a statement would give a row a unique value that another row has. */
export const isTaken = (error: unknown): boolean => databaseCodeOf(error) === "P2002";

/** The adapters' name for a transaction that the database aborted in favor of another one. */
const WRITE_CONFLICT = "TransactionWriteConflict";

/**
 * True when a transaction failed because of another one, so that it can be retried. A failing statement is P2034, a
 * failing raw statement P2010 around the adapter's error; a failing COMMIT is the adapter's error itself.
 */
export function isWriteConflict(error: unknown): boolean {
  return isDatabaseError(error, "P2034") || adapterErrorOf(error)?.cause.kind === WRITE_CONFLICT;
}

function isFastifyRefusal(error: unknown): error is Error & { statusCode: number } {
  return (
    error instanceof Error &&
    "code" in error &&
    typeof error.code === "string" &&
    error.code.startsWith("FST_") &&
    "statusCode" in error &&
    typeof error.statusCode === "number" &&
    error.statusCode >= 400 &&
    error.statusCode < 500
  );
}
