import { z } from "zod";

/**
 * A kind of credential that an operation accepts (rules section 1). `workload` is the session of a trusted workload.
 * `internal` is the credential of a trusted service on the internal listener.
 */
export type AuthKind = "none" | "jwt" | "apikey" | "device" | "workload" | "internal";

/** Roles of a namespace's members, weakest first (rules section 4). */
export const ROLES = ["observer", "operator", "administrator", "owner"] as const;
/** The role of a namespace's member. */
export type Role = (typeof ROLES)[number];

/** True if `role` is at least `minimum` (rules section 4). */
export function roleAtLeast(role: Role, minimum: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(minimum);
}

/** The rate limit of an operation. The server's settings define the number of requests. */
export interface RequestLimit {
  /**
   * Kind of limit: `login` allows few requests for each address and account, `report` allows many requests for each
   * address.
   */
  readonly kind: "login" | "report";
  /** The field of the body that identifies the account. */
  readonly account?: string;
}

/** The editions of the service, smallest first. Each edition contains all operations of the smaller editions. */
export type Edition = "community" | "enterprise" | "cloud";
/** HTTP methods of operations. */
export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/**
 * The source of the caller's role:
 * - `public`: no identity is required
 * - `user`: a user's own account, with or without a namespace
 * - `namespace`: the role in the credential's namespace
 * - `path`: the role in the credential's namespace; 403 if the `{tenant}` of the path is a different namespace
 * - `member`: the role in the `{tenant}` of the path, regardless of the credential's namespace
 * - `device`: like `namespace`, but the caller may also be a device, which may use only its own uid as the `{uid}` of
 *   the path
 * - `session`: like `namespace`, but the caller may also be a device, which has access only to its own sessions
 * - `internal`: the caller is a trusted service on the internal listener, with access to all namespaces
 * - `tenant`: like `internal`, for the namespace in the header `X-Tenant-ID`
 * - `forwarded`: like `internal`, for the user whose credential the request contains
 */
export type Scope =
  | "public"
  | "user"
  | "namespace"
  | "path"
  | "member"
  | "device"
  | "session"
  | "internal"
  | "tenant"
  | "forwarded";

/** Scopes whose operations act on a namespace. In these scopes, an operation for users also accepts workloads. */
const WORKLOAD_SCOPES: readonly Scope[] = ["namespace", "path", "member"];

/** Scopes of the internal listener. */
const INTERNAL_SCOPES: readonly Scope[] = ["internal", "tenant", "forwarded"];

/**
 * Kinds of objects that programs or users declare. Each object has a revision, which changes when a declared field
 * changes. Programs declare the tags of a device separately from the device, so the tags are a separate object.
 */
export type ObjectKind =
  | "namespace"
  | "member"
  | "device"
  | "deviceTags"
  | "tag"
  | "publicKey"
  | "firewallRule"
  | "apiKey"
  | "trustedWorkload"
  | "tunnel"
  | "connector";

type Shape = Record<string, z.ZodType>;

/**
 * One operation of the service. The routes, the client, the OpenAPI document and the tests are derived from this
 * definition.
 */
export interface Operation<
  Id extends string = string,
  P extends Shape = Shape,
  Q extends Shape = Shape,
  B extends z.ZodType | undefined = z.ZodType | undefined,
  R extends z.ZodType | undefined = z.ZodType | undefined,
  S extends Scope = Scope,
  A extends AuthKind = AuthKind,
  M extends Method = Method,
  O extends ObjectKind | null = ObjectKind | null,
> {
  readonly id: Id;
  /** Part of the service to which the operation belongs: its section in the documentation. */
  readonly part: string;
  /** Description of the operation, for the documentation. */
  readonly summary: string;
  readonly method: M;
  /** Path with `{parameters}`, relative to the service's address. */
  readonly path: string;
  /** Other paths of the operation. @default [] */
  readonly aliases: readonly string[];
  /** The smallest edition that contains the operation. @default "community" */
  readonly edition: Edition;
  /**
   * The instances that have a route for the operation. `by edition`: only instances whose edition contains the
   * operation. `always`: all instances; in smaller editions, the route returns an error.
   * @default "by edition"
   */
  readonly routed: "always" | "by edition";
  readonly auth: readonly A[];
  readonly scope: S;
  /**
   * The weakest role that may call the operation. Null for a scope that does not use roles. If the scope uses roles,
   * null has the effect that the service rejects all callers.
   * @default null
   */
  readonly minRole: Role | null;
  readonly params: z.ZodObject<P>;
  readonly query: z.ZodObject<Q>;
  readonly body: B;
  readonly success: {
    /** Status of a successful response. @default 200 */
    readonly status: number;
    /** Names of the response headers that clients use, as in the HTTP response. @default [] */
    readonly headers: readonly string[];
    readonly body: R;
    /** Media type of the body. The client returns a body that is not JSON as a string. @default JSON_TYPE */
    readonly mediaType: string;
    /** True if some responses have no body; `summary` describes these cases. @default false */
    readonly mayBeEmpty: boolean;
    /**
     * Other media types that a client can request with `Accept`. The response body is then text in that format.
     * @default []
     */
    readonly alternatives: readonly string[];
  };
  /** The causes of each error status, including the errors that all operations of the scope have in common. */
  readonly errors: Readonly<Record<number, string>>;
  /**
   * True if the client may repeat the request after a failure that leaves the effect of the request unknown.
   * @default true for GET, PUT and DELETE, false for POST and PATCH
   */
  readonly repeatable: boolean;
  /**
   * True if the operation accepts the header `Idempotency-Key`. While the object that was created with a key exists, a
   * request with the same key returns this object and does not create another object. If the request describes a
   * different object, the response is 409. Only this service supports the header. Other servers ignore it.
   * @default false
   */
  readonly idempotencyKey: boolean;
  /**
   * The kind of object that the operation reads or writes. The response contains the object's revision as `ETag`. A
   * write operation accepts `If-Match`, and the service records each write in the audit trail. Only this service has
   * revisions and an audit trail.
   * @default null
   */
  readonly object: O;
  /** True if the operation creates the object, and therefore does not accept `If-Match`. @default false */
  readonly creates: boolean;
  /** Maximum size of the request body in bytes: 64 KiB. @default 65536 */
  readonly bodyLimit: number;
  /**
   * The rate limit. The service rejects further requests with 429 and `Retry-After`. Only this service has rate limits.
   * @default null
   */
  readonly limit: RequestLimit | null;
}

type Given = "id" | "part" | "summary" | "method" | "path" | "auth" | "scope";
type Schemas = "params" | "query" | "body" | "success";

/** The input of {@link defineOperation}, without the fields that can be derived. */
interface OperationInput<P extends Shape, Q extends Shape, B extends z.ZodType, R extends z.ZodType>
  extends Pick<Operation, Exclude<Given, "id" | "method" | "auth" | "scope">>,
    Partial<Omit<Operation, Given | Schemas | "object">> {
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  readonly success?: Partial<Omit<Operation["success"], "body">> & { readonly body?: R };
}

/** Default media type of bodies. */
export const JSON_TYPE = "application/json";

/** Description of the status 400 for an operation without parameters, query or body values to validate. */
export const MALFORMED = "the request is malformed";

/**
 * Default size limit of a request body. A body has space for a public key of 32 KiB and the other fields. In most
 * requests, such a key is the largest possible value.
 */
const BODY_LIMIT = 64 * 1024;

/** True for an operation that changes a declared object. */
export function writesObject<O extends Pick<Operation, "object" | "method">>(
  operation: O,
): operation is O & { readonly object: ObjectKind } {
  return operation.object !== null && operation.method !== "GET";
}

/**
 * True for an operation that changes a declared object and returns no object. For such an operation, this service
 * returns an acknowledgement, and other servers return an empty body.
 */
export const isAcknowledged = (operation: Pick<Operation, "object" | "method" | "success">): boolean =>
  writesObject(operation) && operation.success.body === undefined;

/** True for an operation that accepts `If-Match`. */
export const takesIfMatch = (operation: Pick<Operation, "object" | "method" | "creates">): boolean =>
  writesObject(operation) && !operation.creates;

/** True for an operation that accepts the session of a trusted workload in addition to its declared credentials. */
export const takesWorkload = ({ auth, scope }: Pick<Operation, "auth" | "scope">): boolean =>
  auth.includes("workload") || (auth.includes("jwt") && WORKLOAD_SCOPES.includes(scope));

/** Returns the kinds of credentials that an operation accepts, including the sessions of workloads. */
export const acceptedCredentials = (operation: Pick<Operation, "auth" | "scope">): readonly AuthKind[] => [
  ...operation.auth.filter((kind) => kind !== "workload"),
  ...(takesWorkload(operation) ? (["workload"] as const) : []),
];

const CREDENTIAL_REFUSED = "JWT or API key missing, malformed, expired or unknown";

const LOCKOUT_REFUSED =
  "the lockout guard refuses the write; the response header `Gatehouse-Lockout-Guard` contains the kind of lockout";

/**
 * Returns the errors of an operation: its own errors and the common errors. Every operation has 500. Depending on the
 * scope, 401, 403 or both are added. `If-Match` adds 412, and the lockout guard adds 409.
 */
function errorsOf(
  operation: Pick<Operation, "scope" | "object" | "method" | "creates" | "minRole">,
  own: Operation["errors"] = {},
): Record<number, string> {
  const { scope } = operation;
  const common: Record<number, string> = { 500: "internal error" };
  if (INTERNAL_SCOPES.includes(scope)) common[403] = "`X-Internal-Token` missing or wrong";
  if (scope === "forwarded" || (scope !== "public" && !INTERNAL_SCOPES.includes(scope))) {
    common[401] = CREDENTIAL_REFUSED;
  }
  if (takesIfMatch(operation)) common[412] = "the object's revision differs from `If-Match`";
  const errors = { ...common, ...own };
  if (takesLockoutGuard(operation)) errors[409] = [own[409] ?? [], LOCKOUT_REFUSED].flat().join(", or ");
  return errors;
}

/**
 * Creates an operation from its description. Omitted fields get the defaults of {@link Operation}, and the errors of
 * the scope are added.
 * @throws Error when the `{parameters}` of the path differ from `params`, or the scope does not fit the credentials
 */
export function defineOperation<
  const Id extends string,
  P extends Shape = Record<never, never>,
  Q extends Shape = Record<never, never>,
  B extends z.ZodType | undefined = undefined,
  R extends z.ZodType | undefined = undefined,
  const S extends Scope = Scope,
  const A extends AuthKind = AuthKind,
  const M extends Method = Method,
  const O extends ObjectKind | null = null,
>(
  input: OperationInput<P, Q, NonNullable<B>, NonNullable<R>> & {
    readonly id: Id;
    readonly scope: S;
    readonly auth: readonly A[];
    readonly method: M;
    readonly object?: O;
  },
): Operation<Id, P, Q, B, R, S, A, M, O> {
  const open = input.auth.some((kind) => kind === "none");
  const inPath = [...input.path.matchAll(/\{([^}]+)\}/g)].map((match) => match[1]);
  const declared = Object.keys(input.params ?? {});
  if (inPath.join() !== declared.join()) {
    throw new Error(`${input.id}: path has {${inPath}}, params declare {${declared}}`);
  }
  const internal = input.auth.join() === "internal";
  if (open !== (input.scope === "public") || internal !== INTERNAL_SCOPES.includes(input.scope)) {
    throw new Error(`${input.id}: scope "${input.scope}" does not fit auth "${input.auth}"`);
  }
  const creates = input.creates ?? false;
  const minRole = input.minRole ?? null;
  const object = (input.object ?? null) as O;
  return {
    ...input,
    // Each default is set separately. If the input were spread over the defaults, a field that is explicitly undefined
    // would remove a restrictive default.
    aliases: input.aliases ?? [],
    edition: input.edition ?? "community",
    routed: input.routed ?? "by edition",
    minRole,
    repeatable: input.repeatable ?? !["POST", "PATCH"].includes(input.method),
    idempotencyKey: input.idempotencyKey ?? false,
    object,
    bodyLimit: input.bodyLimit ?? BODY_LIMIT,
    limit: input.limit ?? null,
    creates,
    params: z.object((input.params ?? {}) as P),
    query: z.object((input.query ?? {}) as Q),
    body: input.body as B,
    success: {
      status: input.success?.status ?? 200,
      headers: input.success?.headers ?? [],
      mediaType: input.success?.mediaType ?? JSON_TYPE,
      mayBeEmpty: input.success?.mayBeEmpty ?? false,
      alternatives: input.success?.alternatives ?? [],
      body: input.success?.body as R,
    },
    errors: errorsOf({ ...input, object, creates, minRole }, input.errors),
  };
}

/** Kinds of objects that give a user, an API key or a workload access to a namespace. */
const IDENTITIES: readonly ObjectKind[] = ["member", "apiKey", "trustedWorkload"];

/**
 * Header of a write request, with the value `on`. The service then refuses the write if, afterwards, the caller could
 * not repair the namespace, or no administrator except the owner would remain. Only this service supports the header.
 * Other servers ignore it.
 */
export const LOCKOUT_GUARD = "Gatehouse-Lockout-Guard";

/** Value of {@link LOCKOUT_GUARD}. */
export const lockoutGuardHeader = z
  .literal("on", "must be on")
  .describe(
    "Refuses the write with 409 if it removes or shortens the access of the caller, or if no administrator except the owner remains",
  );

/**
 * The lockouts that the guard refuses, with their effect and the remedy. The header {@link LOCKOUT_GUARD} of the response
 * contains the name of the lockout.
 */
export const LOCKOUTS = {
  "caller-removed": {
    effect: "remove permissions of the caller",
    remedy: "use the credential of another administrator",
  },
  "caller-shortened": {
    effect: "shorten the access of the caller",
    remedy: "use the credential of another administrator",
  },
  "administrators-removed": {
    effect: "remove the last administrator except the owner",
    remedy: "first add another administrator",
  },
  "administrators-shortened": {
    effect: "shorten the access of all administrators except the owner",
    remedy: "first add an administrator whose access lasts longer",
  },
} as const;

/** A lockout that the guard refuses. */
export type LockoutName = keyof typeof LOCKOUTS;

/**
 * True for an operation that accepts {@link LOCKOUT_GUARD}: an operation for administrators that changes or deletes a
 * member, an API key or a trusted workload. Three similar operations do not accept the header. A member who leaves the
 * namespace gives up access on purpose. A deleted namespace does not need to be repaired. A user who deletes the user's
 * own account does not write to a namespace.
 */
export const takesLockoutGuard = (
  operation: Pick<Operation, "object" | "method" | "creates" | "minRole">,
): boolean =>
  takesIfMatch(operation) &&
  operation.minRole === "administrator" &&
  IDENTITIES.some((kind) => kind === operation.object);

/**
 * Header of a write request. Its value identifies the program resource that declares the object. The value is a hint
 * for users: any client with write access can send any value, and no decision depends on it. Only this service supports
 * the header. Other servers ignore it.
 */
export const DECLARED_BY = "Gatehouse-Declared-By";

/** Maximum length of a value of {@link DECLARED_BY}, in bytes. */
const LONGEST = 1024;

const PART = "(?:[A-Za-z0-9._~!*'()-]|%[0-9A-Fa-f]{2})+";
const ALLOWED = `must be project/stack/resource with at most ${LONGEST} bytes, and each part must be non-empty percent-encoded UTF-8 without control characters`;

/** Value of {@link DECLARED_BY}. */
export const declaredByHeader = z
  .string()
  .regex(new RegExp(`^(?=.{1,${LONGEST}}$)${PART}/${PART}/${PART}$`), { error: ALLOWED, abort: true })
  .refine((text) => partsOf(text)?.every((part) => !/\p{Cc}/u.test(part)) ?? false, ALLOWED)
  .describe(
    "`project/stack/resource` of the program that declares the object, each part percent-encoded. The value" +
      " is a hint for users: the service shows it with the object and in the audit trail, and no decision " +
      "depends on it",
  );

const declarationFields = { project: z.string(), stack: z.string(), resource: z.string() };

/** The program resource that declares an object, according to a request. */
export const declaration = z.object(declarationFields);

/** A resource of a Pulumi program: the names of the project, the stack and the resource. */
export type Declaration = Readonly<z.output<typeof declaration>>;

/**
 * The program resource that last declared an object, according to the header {@link DECLARED_BY}; absent if no request
 * contained the header.
 */
export const declaredBy = z
  .object({ ...declarationFields, at: z.iso.datetime({ offset: false }) })
  .optional()
  .describe(
    "The program resource that last declared the object, according to the request. The value is a hint: " +
      "any client with write access can forge it",
  );

/** Kinds of objects that programs cannot declare. */
const UNDECLARED: ReadonlySet<string> = new Set(["tunnel", "connector"]);

/** True for an operation that accepts {@link DECLARED_BY}. */
export const takesDeclaredBy = (operation: Operation): boolean =>
  writesObject(operation) && !UNDECLARED.has(operation.object);

/** Parses a value of {@link DECLARED_BY} that matches {@link declaredByHeader}. */
export function declarationOf(text: string): Declaration {
  const [project = "", stack = "", resource = ""] = partsOf(text) ?? [];
  return { project, stack, resource };
}

/** Returns the value of {@link DECLARED_BY} for a resource; undefined if the header cannot contain the value. */
export function declaredByText({ project, stack, resource }: Declaration): string | undefined {
  const text = [project, stack, resource].map((part) => encodeURIComponent(part.toWellFormed())).join("/");
  return declaredByHeader.safeParse(text).success ? text : undefined;
}

function partsOf(text: string): string[] | undefined {
  try {
    return text.split("/").map(decodeURIComponent);
  } catch {
    // `decodeURIComponent` throws if the percent-encoded bytes are not UTF-8.
    return undefined;
  }
}
