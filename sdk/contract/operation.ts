import { z } from "zod";

/**
 * A kind of credential that an operation takes (rules section 1). `internal` stands for a trusted service on the
 * private listener.
 */
export type AuthKind = "none" | "jwt" | "apikey" | "device" | "internal";

/** Roles of a namespace's members, weakest first (rules section 4). */
export const ROLES = ["observer", "operator", "administrator", "owner"] as const;
/** A role of a namespace's member. */
export type Role = (typeof ROLES)[number];

/** True when `role` is at least `minimum` (rules section 4). */
export function roleAtLeast(role: Role, minimum: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(minimum);
}

/** How often an operation may be called. The server's settings say how many times that is. */
export interface RequestLimit {
  /** `login`: a few times, for each address and account; `report`: many times, for each address. */
  readonly kind: "login" | "report";
  /** The field of the body that names the account. */
  readonly account?: string;
}

/** The editions of the service, each with all that the ones before it have. */
export type Edition = "community" | "enterprise" | "cloud";
/** Methods of HTTP that operations have. */
export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/**
 * Where the caller's role comes from:
 * - `public`: no identity needed
 * - `user`: a user of its own account, with or without a namespace
 * - `namespace`: the role in the credential's namespace
 * - `path`: the role in the credential's namespace, which must be the `{tenant}` of the path, else 403
 * - `member`: the role in the `{tenant}` of the path, whichever namespace the credential is for
 * - `device`: as `namespace`; or the caller is a device, and the one that `{uid}` in the path names, if it is there
 * - `session`: as `namespace`; or the caller is a device, which sees its own sessions only
 * - `internal`: the caller is a trusted service on the private listener, and acts on any namespace
 * - `tenant`: as `internal`, for the namespace that the header `X-Tenant-ID` names
 * - `forwarded`: as `internal`, for the user whose credential the request carries
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

/** Scopes of the private listener. */
const INTERNAL_SCOPES: readonly Scope[] = ["internal", "tenant", "forwarded"];

/**
 * Kinds of objects that people declare. Each has a revision, which changes with what people declare of it. The tags of
 * a device are declared apart from the device, so they are an object of their own.
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
  | "tunnel"
  | "connector";

type Shape = Record<string, z.ZodType>;

/** One operation of the service. Routes, client, OpenAPI document and tests are derived from it. */
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
  /** The part of the service that it belongs to, for people. */
  readonly part: string;
  /** What it does, for people. */
  readonly summary: string;
  readonly method: M;
  /** Path with `{parameters}`, relative to the service's address. */
  readonly path: string;
  /** Other paths under which it is served. @default [] */
  readonly aliases: readonly string[];
  /** The lowest edition that has it. @default "community" */
  readonly edition: Edition;
  /** `always`: lower editions serve it too, and answer that they do not have it. @default "by edition" */
  readonly routed: "always" | "by edition";
  readonly auth: readonly A[];
  readonly scope: S;
  /**
   * The weakest role that may call it; null: it needs no role, and where it is about a namespace, no member may call it.
   * @default null
   */
  readonly minRole: Role | null;
  readonly params: z.ZodObject<P>;
  readonly query: z.ZodObject<Q>;
  readonly body: B;
  readonly success: {
    /** @default 200 */
    readonly status: number;
    /** Response headers that a client may read, in the wire's spelling. @default [] */
    readonly headers: readonly string[];
    readonly body: R;
    /** Media type of the body; a body that is not JSON is a text. @default JSON_TYPE */
    readonly mediaType: string;
    /** True when there is no body in a case that `summary` states. @default false */
    readonly mayBeEmpty: boolean;
    /** Media types of texts that a caller can ask for in place of the body, by `Accept`. @default [] */
    readonly alternatives: readonly string[];
  };
  /** What each error status means here, those included that every operation of the scope has. */
  readonly errors: Readonly<Record<number, string>>;
  /**
   * True when the request may be sent again after a failure that leaves open what it did.
   * @default true for GET, PUT and DELETE, false for POST and PATCH
   */
  readonly repeatable: boolean;
  /**
   * True when it takes the header `Idempotency-Key`: while the object lives that a request with a key made, the same
   * key answers with that object and makes no other one; 409 when the request names another one. An addition of this
   * service; others ignore the header.
   * @default false
   */
  readonly idempotencyKey: boolean;
  /**
   * The object that it is about. Its answer carries the object's revision as `ETag`; a write takes `If-Match`, and is
   * recorded in the audit trail. An addition of this service.
   * @default null
   */
  readonly object: O;
  /** True when it makes the object, so that there is nothing that `If-Match` could mean. @default false */
  readonly creates: boolean;
  /** Largest request body in bytes: 64 KiB. @default 65536 */
  readonly bodyLimit: number;
  /**
   * Requests that come too often are answered with 429 and `Retry-After`. An addition of this service.
   * @default null
   */
  readonly limit: RequestLimit | null;
}

type Given = "id" | "part" | "summary" | "method" | "path" | "auth" | "scope";
type Schemas = "params" | "query" | "body" | "success";

/** What describes an operation, without what follows from the rest. */
interface OperationInput<P extends Shape, Q extends Shape, B extends z.ZodType, R extends z.ZodType>
  extends Pick<Operation, Exclude<Given, "id" | "method" | "auth" | "scope">>,
    Partial<Omit<Operation, Given | Schemas | "object">> {
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  readonly success?: Partial<Omit<Operation["success"], "body">> & { readonly body?: R };
}

/** Media type of bodies of operations that say no other one. */
export const JSON_TYPE = "application/json";

/** What 400 means for an operation without values that could be wrong. */
export const MALFORMED = "the request is malformed";

/** Enough for the largest value of most operations, a public key of 32 KiB, and what comes with it. */
const BODY_LIMIT = 64 * 1024;

/** True for an operation that changes an object that people declare. */
export function writesObject(operation: Operation): operation is Operation & { readonly object: ObjectKind } {
  return operation.object !== null && operation.method !== "GET";
}

/** True for an operation that takes `If-Match`. */
export const takesIfMatch = (operation: Operation): boolean => writesObject(operation) && !operation.creates;

const CREDENTIAL_REFUSED = "JWT or API key missing, malformed, expired or unknown";

/** The errors that every operation of a scope may answer with. */
function commonErrors(scope: Scope, conditional: boolean): Record<number, string> {
  const common: Record<number, string> = { 500: "internal error" };
  if (INTERNAL_SCOPES.includes(scope)) common[403] = "X-Internal-Token missing or wrong";
  if (scope === "forwarded" || (scope !== "public" && !INTERNAL_SCOPES.includes(scope))) {
    common[401] = CREDENTIAL_REFUSED;
  }
  if (conditional) common[412] = "the object's revision is not the one of If-Match";
  return common;
}

/**
 * Describes an operation; what is left out has the defaults of {@link Operation}, and the errors of its scope are
 * added.
 * @throws Error when `{parameters}` of the path and `params` differ, or the scope does not fit the credentials
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
  const conditional = Boolean(input.object) && input.method !== "GET" && !creates;
  return {
    ...input,
    // Not by spreading: an explicit undefined must not take the place of a default that refuses.
    aliases: input.aliases ?? [],
    edition: input.edition ?? "community",
    routed: input.routed ?? "by edition",
    minRole: input.minRole ?? null,
    repeatable: input.repeatable ?? !["POST", "PATCH"].includes(input.method),
    idempotencyKey: input.idempotencyKey ?? false,
    object: (input.object ?? null) as O,
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
    errors: { ...commonErrors(input.scope, conditional), ...input.errors },
  };
}

/**
 * Header of a write that says which resource of which program declares the object. It is a hint for people: whoever may
 * write can send any, and nothing is decided by it. An addition of this service; others ignore it.
 */
export const DECLARED_BY = "Gatehouse-Declared-By";

/** Longest value of {@link DECLARED_BY}, in bytes. */
const LONGEST = 1024;

const PART = "(?:[A-Za-z0-9._~!*'()-]|%[0-9A-Fa-f]{2})+";
const ALLOWED = `must be project/stack/resource, each percent-encoded UTF-8 without control characters and not empty, of at most ${LONGEST} bytes in all`;

/** Value of {@link DECLARED_BY}. */
export const declaredByHeader = z
  .string()
  .regex(new RegExp(`^(?=.{1,${LONGEST}}$)${PART}/${PART}/${PART}$`), { error: ALLOWED, abort: true })
  .refine((text) => partsOf(text)?.every((part) => !/\p{Cc}/u.test(part)) ?? false, ALLOWED)
  .describe(
    "project/stack/resource of the program that declares the object, each percent-encoded. A hint for people, shown " +
      "with the object and in the audit trail: nothing is decided by it",
  );

const declarationFields = { project: z.string(), stack: z.string(), resource: z.string() };

/** The resource of a program that a request said it is of. */
export const declaration = z.object(declarationFields);

/** A resource of a Pulumi program: the names of its project, its stack and itself. */
export type Declaration = Readonly<z.output<typeof declaration>>;

/** Which resource of which program declared an object last, by what requests said; absent where none said it. */
export const declaredBy = z
  .object({ ...declarationFields, at: z.iso.datetime({ offset: false }) })
  .optional()
  .describe("What declared it last, as that request said: a hint that any writer can forge");

/** Kinds of objects that no program declares. */
const UNDECLARED: ReadonlySet<string> = new Set(["tunnel", "connector"]);

/** True for an operation that takes {@link DECLARED_BY}. */
export const takesDeclaredBy = (operation: Operation): boolean =>
  writesObject(operation) && !UNDECLARED.has(operation.object);

/** What a value of {@link DECLARED_BY} says, which fits {@link declaredByHeader}. */
export function declarationOf(text: string): Declaration {
  const [project = "", stack = "", resource = ""] = partsOf(text) ?? [];
  return { project, stack, resource };
}

/** The value of {@link DECLARED_BY}; undefined for what the header cannot hold. */
export function declaredByText({ project, stack, resource }: Declaration): string | undefined {
  const text = [project, stack, resource].map((part) => encodeURIComponent(part.toWellFormed())).join("/");
  return declaredByHeader.safeParse(text).success ? text : undefined;
}

function partsOf(text: string): string[] | undefined {
  try {
    return text.split("/").map(decodeURIComponent);
  } catch {
    // Bytes that are no UTF-8.
    return undefined;
  }
}
