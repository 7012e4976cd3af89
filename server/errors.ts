import { SERVICE_CODES } from "@gatehouse-access/sdk/contract";
import { Prisma } from "./db/generated/sqlite/client.ts";
import { adapterErrorOf, type Outage, outageOf } from "./db/outage.ts";

/** An error that has an HTTP status. The response contains its message unchanged. */
export abstract class ServiceError extends Error {
  /** Headers of the error response. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.headers = headers;
  }
}

/**
 * The error for status 400: a value is not allowed, or the state of the object forbids the request. For a value with
 * the wrong JSON type, use {@link WrongTypeError}. For invalid fields of a user, use {@link InvalidFieldsError}.
 */
export class InvalidError extends ServiceError {}
/**
 * The error for status 401: the credential is missing or wrong. If a valid credential lacks the permission, use {@link
 * ForbiddenError}.
 */
export class UnauthenticatedError extends ServiceError {}
/**
 * The error for status 402: billing refuses the request, or a limit of the cloud edition is reached. For the operator's
 * limits, use {@link ForbiddenError}.
 */
export class PaymentError extends ServiceError {}
/**
 * The error for status 403: permission denied, or a limit is reached. If the request is currently impossible for every
 * caller, use {@link InvalidError}.
 */
export class ForbiddenError extends ServiceError {}
/**
 * The error for status 404: the caller's namespace has no such object. The response is the same if another namespace
 * has the object.
 */
export class NotFoundError extends ServiceError {}
/**
 * The error for status 409: an object with this name or key already exists. For a user's name or e-mail address, use
 * {@link TakenFieldsError}.
 */
export class ConflictError extends ServiceError {}
/**
 * The error for status 415: the service does not support the content type of the body. For a body that is malformed
 * JSON, use {@link WrongTypeError}.
 */
export class ContentTypeError extends ServiceError {}
/**
 * The error for status 422: the body is not JSON, or a value has the wrong JSON type. For a value out of range, use
 * {@link InvalidError}.
 */
export class WrongTypeError extends ServiceError {}
/**
 * The error for status 412: the object's revision differs from `If-Match`. If the object no longer exists, use {@link
 * NotFoundError}.
 */
export class PreconditionError extends ServiceError {}
/**
 * The error for status 503: the service is overloaded, and the request has changed nothing. For a caller that sends too
 * many requests, use {@link RateLimitedError}.
 */
export class BusyError extends ServiceError {}
/**
 * Returns the error for a policy decision that is rejected because too many decisions of the namespace are waiting.
 */
export const tooManyDecisions = (): BusyError =>
  new BusyError("too many decisions of the namespace are waiting; try again", { "Retry-After": "2" });
/** The error for status 501: this instance or this version does not support the request. */
export class NotImplementedError extends ServiceError {}
/**
 * The error for status 500: the engine behind a connector is not connected. If the connector does not exist, use {@link
 * NotFoundError}.
 */
export class NotConnectedError extends ServiceError {}
/**
 * The error for status 429: too many wrong passwords or codes. For too many requests, use {@link RateLimitedError}.
 */
export class LockedOutError extends ServiceError {}
/**
 * The error for status 429: too many requests from an address or for an account. For wrong passwords, use {@link
 * LockedOutError}.
 */
export class RateLimitedError extends ServiceError {}

/**
 * The error for status 424: the payment gateway failed, or rejected the customer's payment method. The request has
 * changed nothing and can be retried. If the customer must pay first, use {@link PaymentError}.
 */
export class PaymentGatewayError extends ServiceError {
  /** Machine-readable cause of the failure (models section 12). */
  readonly code: string;

  /** @param cause the payment gateway's error, for the log */
  constructor(code: string, cause?: unknown) {
    super(`the payment gateway failed: ${code}`);
    this.code = code;
    this.cause = cause;
  }
}

/**
 * An error about invalid or taken fields of a user. The response's body is an array of the names of these fields (rules
 * section 8).
 */
abstract class FieldsError extends ServiceError {
  readonly fields: readonly string[];

  constructor(fields: readonly string[]) {
    super(fields.join(", "));
    this.fields = fields;
  }
}
/**
 * The error for status 400: the values of these fields are not allowed. If another user already has the values, use
 * {@link TakenFieldsError}.
 */
export class InvalidFieldsError extends FieldsError {}
/** The error for status 409: another user already has the values of these fields. */
export class TakenFieldsError extends FieldsError {}

type ErrorClass = abstract new (...args: never[]) => ServiceError;

/** Maps error classes to statuses, for all responses (rules section 8). */
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
  // The API specifies status 500 for this error. Existing clients do not handle 502.
  [NotConnectedError, 500],
  [BusyError, 503],
]);

/**
 * Responses for the Prisma errors of a race condition. In such a race, another request changes the data between the
 * check and the write.
 */
const DATABASE_ERRORS: Readonly<Record<string, { readonly status: number; readonly message: string }>> = {
  P2002: { status: 409, message: "already exists" },
  P2003: { status: 404, message: "an object that the request refers to no longer exists" },
  P2025: { status: 404, message: "not found" },
};

/**
 * Prisma's error code for each kind of adapter error. Adapter errors are the errors of Prisma's database drivers.
 * Statements that bypass Prisma's client throw them.
 */
const CODES: Readonly<Record<string, string>> = {
  UniqueConstraintViolation: "P2002",
  ForeignKeyConstraintViolation: "P2003",
};

/**
 * Responses to requests during each kind of database outage. `retryAfter` is in seconds. Only the log contains the
 * cause.
 */
const OUTAGES: Readonly<Record<Outage, { readonly message: string; readonly retryAfter: number }>> = {
  busy: { message: "the database is busy, try again", retryAfter: 1 },
  unwritable: { message: "the service cannot write to the database now; try again later", retryAfter: 5 },
  unreachable: { message: "the service cannot connect to the database now; try again later", retryAfter: 5 },
};

/**
 * Returns the body of an error response. The body of a 404 contains a code. The code proves to clients that an
 * operation of this service sent the response. The router's 404 for an unknown path has no code.
 */
const withCode = (status: number, text: string) =>
  status === 404 ? { message: text, code: SERVICE_CODES.notFound } : { message: text };

/** The response to a failed request. */
interface ErrorAnswer {
  readonly status: number;
  readonly body: { readonly message: string; readonly code?: string } | readonly string[];
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Returns the status of an error's class. If the class has no status, returns the status of its nearest base class with
 * a status.
 */
function statusOf(error: ServiceError): number | undefined {
  for (let type: unknown = error.constructor; type instanceof Function; type = Object.getPrototypeOf(type)) {
    const status = STATUS.get(type as unknown as ErrorClass);
    if (status !== undefined) return status;
  }
  return undefined;
}

function bodyOf(error: ServiceError, status: number): ErrorAnswer["body"] {
  if (error instanceof FieldsError) return error.fields;
  const { message } = error;
  return error instanceof PaymentGatewayError ? { message, code: error.code } : withCode(status, message);
}

/**
 * Returns the response to an error. Returns undefined for an unexpected error, because only the log may contain its
 * message.
 */
export function answerTo(error: unknown): ErrorAnswer | undefined {
  if (error instanceof ServiceError) {
    const status = statusOf(error);
    if (status === undefined) return undefined;
    return { status, body: bodyOf(error, status), headers: error.headers };
  }
  if (isWriteConflict(error)) return unavailable("too many changes at once, try again", 1);
  const outage = outageOf(error);
  if (outage) return unavailable(OUTAGES[outage].message, OUTAGES[outage].retryAfter);
  const code = databaseCodeOf(error);
  if (code !== undefined) {
    const known = DATABASE_ERRORS[code];
    return known && { status: known.status, body: withCode(known.status, known.message), headers: {} };
  }
  // Fastify's own errors (body too large, bad content length) have messages without internal details.
  if (isFastifyRefusal(error)) {
    return { status: error.statusCode, body: { message: error.message }, headers: {} };
  }
  return undefined;
}

/**
 * Returns a response with status 503.
 * @param retryAfter time until a retry, in seconds
 */
const unavailable = (message: string, retryAfter: number): ErrorAnswer => ({
  status: 503,
  body: { message },
  headers: { "Retry-After": String(retryAfter) },
});

/** Returns Prisma's code for a database error, even if Prisma's client did not wrap the error. */
const databaseCodeOf = (error: unknown): string | undefined =>
  isDatabaseError(error) ? error.code : CODES[adapterErrorOf(error)?.cause.kind ?? ""];

/** Returns true for a database error with the given code or, if no code is given, with any of Prisma's codes. */
export function isDatabaseError(
  error: unknown,
  code?: string,
): error is Prisma.PrismaClientKnownRequestError {
  return error instanceof Prisma.PrismaClientKnownRequestError && (code === undefined || error.code === code);
}

/** Returns true for the error of a statement that violates a unique constraint. */
export const isTaken = (error: unknown): boolean => databaseCodeOf(error) === "P2002";

/** Returns true for the error of a statement that refers to a missing row, such as a deleted namespace. */
export const refersToMissingRow = (error: unknown): boolean => databaseCodeOf(error) === "P2003";

/**
 * The error kind that the adapters use for a transaction that the database aborted because of a conflict with another
 * transaction.
 */
const WRITE_CONFLICT = "TransactionWriteConflict";

/**
 * Returns true if a transaction failed because of a conflict with another transaction. Such a transaction can be
 * retried. A failed statement throws P2034. A failed raw statement throws P2010 with the adapter's error as its cause.
 * A failed COMMIT throws the adapter's error itself.
 */
export function isWriteConflict(error: unknown): boolean {
  return isDatabaseError(error, "P2034") || adapterErrorOf(error)?.cause.kind === WRITE_CONFLICT;
}

/**
 * Returns the kind of outage that caused work to fail. A retry can then succeed. Returns undefined for other errors.
 * Write conflicts and a `BusyError` are treated as the outage `busy`.
 */
export const outageOfWork = (error: unknown): Outage | undefined =>
  error instanceof BusyError || isWriteConflict(error) ? "busy" : outageOf(error);

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
