import { z } from "zod";

/**
 * Who may call an operation. `internal` is the private listener of the service; the others are
 * credentials of a public request, listed in rules section 1.
 */
export type AuthKind = "none" | "jwt" | "apikey" | "device" | "internal";

/** Roles of a namespace's members, weakest first (rules section 4). */
export const ROLES = ["observer", "operator", "administrator", "owner"] as const;
export type Role = (typeof ROLES)[number];

/** True when `role` is at least `minimum` (rules section 4). */
export function roleAtLeast(role: Role, minimum: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(minimum);
}

/** How often an operation may be called; the server's settings say the figures. */
export interface RequestLimit {
  /** `login`: few, for each address and account; `report`: many, for each address. */
  readonly kind: "login" | "report";
  /** Field of the body that names the account. */
  readonly account?: string;
}

export type Edition = "community" | "enterprise" | "cloud";
export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/**
 * Where the caller's role comes from:
 * - `public`: no identity needed
 * - `user`: a user of its own account, with or without a namespace
 * - `namespace`: the role in the credential's namespace
 * - `path`: the role in the credential's namespace, which must be the `{tenant}` of the path, else 403
 * - `member`: the role in the `{tenant}` of the path, whichever namespace the credential is for
 * - `device`: as `namespace`; or a device, which is the one of the path where that has a `{uid}`
 * - `session`: as `namespace`; or a device, whose handler finds sessions of that device alone
 * - `internal`: a trusted service on the private listener, about any namespace
 * - `tenant`: the same, about the namespace that its header `X-Tenant-ID` names
 * - `forwarded`: a trusted service there, asking about the caller whose credential its request carries
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
 * Kinds of objects that people declare. Each has a revision over what they declare of it; the tags of a device, which
 * are declared by themselves, are an object of their own.
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

interface OperationInput<P extends Shape, Q extends Shape, B extends z.ZodType, R extends z.ZodType> {
  readonly id: string;
  readonly part: string;
  readonly summary: string;
  readonly method: Method;
  /** Path with `{parameters}`, relative to the service's address. */
  readonly path: string;
  readonly aliases?: readonly string[];
  readonly edition?: Edition;
  /** `always`: also on lower editions, where it answers that it is not there. */
  readonly routed?: "always";
  readonly auth: readonly AuthKind[];
  readonly scope: Scope;
  readonly minRole?: Role;
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  readonly success?: {
    readonly status?: number;
    /** Response headers a client may read, in the wire's spelling. */
    readonly headers?: readonly string[];
    readonly body?: R;
    /** Media type of the body; one that is not JSON is a text. Default: {@link JSON_TYPE}. */
    readonly mediaType?: string;
    /** The body is left out in a case that `summary` states. */
    readonly mayBeEmpty?: boolean;
    /** Media types of texts that a caller can ask for instead of the body, by `Accept`. */
    readonly alternatives?: readonly string[];
  };
  /** What each error status means here; {@link defineOperation} adds those that all of the scope have. */
  readonly errors?: Readonly<Record<number, string>>;
  /**
   * The request may be sent again after an unclear failure. GET, PUT and DELETE always may; a POST or
   * PATCH only where this says so, because its second run changes nothing more.
   */
  readonly repeatable?: boolean;
  /**
   * The object that the operation is about. Its answer carries the object's revision as `ETag`; a write takes
   * `If-Match` and is recorded in the audit trail. An addition of this service.
   */
  readonly object?: ObjectKind;
  /** The operation makes the object, so there is nothing that `If-Match` could mean. */
  readonly creates?: boolean;
  /**
   * Takes the header `Idempotency-Key`: while the object lives that a request with a key made, the same key
   * answers with that object and makes no other one; 409 where the request names another one. An addition of this service; others ignore the header.
   */
  readonly idempotencyKey?: boolean;
  /** Largest request body in bytes; default 64 KiB. */
  readonly bodyLimit?: number;
  /** Requests that come too often are answered with 429 and `Retry-After`. An addition of this service. */
  readonly limit?: RequestLimit;
}

/** One operation of the service: the single description that routes, client, OpenAPI and tests derive from. */
export interface Operation<
  Id extends string = string,
  P extends Shape = Shape,
  Q extends Shape = Shape,
  B extends z.ZodType | undefined = z.ZodType | undefined,
  R extends z.ZodType | undefined = z.ZodType | undefined,
  S extends Scope = Scope,
  A extends AuthKind = AuthKind,
> {
  readonly id: Id;
  readonly part: string;
  readonly summary: string;
  readonly method: Method;
  readonly path: string;
  readonly aliases: readonly string[];
  readonly edition: Edition;
  readonly routed: "always" | "by edition";
  readonly auth: readonly A[];
  readonly scope: S;
  readonly minRole: Role | null;
  readonly params: z.ZodObject<P>;
  readonly query: z.ZodObject<Q>;
  readonly body: B;
  readonly success: {
    readonly status: number;
    readonly headers: readonly string[];
    readonly body: R;
    readonly mediaType: string;
    readonly mayBeEmpty: boolean;
    readonly alternatives: readonly string[];
  };
  readonly errors: Readonly<Record<number, string>>;
  readonly repeatable: boolean;
  readonly idempotencyKey: boolean;
  readonly object: ObjectKind | null;
  readonly creates: boolean;
  readonly bodyLimit: number;
  readonly limit: RequestLimit | null;
}

/** Media type of bodies, unless the operation says another one. */
export const JSON_TYPE = "application/json";

/** What 400 means where there is no value that could be wrong. */
export const MALFORMED = "the request is malformed";

/** Room for the largest value that most operations take, a public key of 32 KiB, with the rest. */
const BODY_LIMIT = 64 * 1024;

/** True for an operation that changes an object that people declare. */
export function writesObject(operation: Operation): operation is Operation & { readonly object: ObjectKind } {
  return operation.object !== null && operation.method !== "GET";
}

/** True for an operation that takes `If-Match`. */
export const takesIfMatch = (operation: Operation): boolean => writesObject(operation) && !operation.creates;

const CREDENTIAL_REFUSED = "JWT or API key missing, malformed, expired or unknown";

/** What every operation of the scope may answer. */
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
 * Describes an operation, filling in what follows from the rest: errors every operation has, and whether
 * its method may be repeated.
 * @throws Error when `{parameters}` of the path and `params` differ, or the scope does not fit the
 * credentials: a contract that contradicts itself must not reach a server.
 */
export function defineOperation<
  const Id extends string,
  P extends Shape = Record<never, never>,
  Q extends Shape = Record<never, never>,
  B extends z.ZodType | undefined = undefined,
  R extends z.ZodType | undefined = undefined,
  const S extends Scope = Scope,
  const A extends AuthKind = AuthKind,
>(
  input: Omit<OperationInput<P, Q, NonNullable<B>, NonNullable<R>>, "id" | "scope" | "auth"> & {
    readonly id: Id;
    readonly scope: S;
    readonly auth: readonly A[];
  },
): Operation<Id, P, Q, B, R, S, A> {
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
  const conditional = input.object !== undefined && input.method !== "GET" && !creates;
  return {
    id: input.id,
    part: input.part,
    summary: input.summary,
    method: input.method,
    path: input.path,
    aliases: input.aliases ?? [],
    edition: input.edition ?? "community",
    routed: input.routed ?? "by edition",
    auth: input.auth,
    scope: input.scope,
    minRole: input.minRole ?? null,
    params: z.object((input.params ?? {}) as P),
    query: z.object((input.query ?? {}) as Q),
    body: input.body as B,
    success: {
      status: input.success?.status ?? 200,
      headers: input.success?.headers ?? [],
      body: input.success?.body as R,
      mediaType: input.success?.mediaType ?? JSON_TYPE,
      mayBeEmpty: input.success?.mayBeEmpty ?? false,
      alternatives: input.success?.alternatives ?? [],
    },
    errors: { ...commonErrors(input.scope, conditional), ...input.errors },
    repeatable: input.repeatable ?? !["POST", "PATCH"].includes(input.method),
    idempotencyKey: input.idempotencyKey ?? false,
    object: input.object ?? null,
    creates,
    bodyLimit: input.bodyLimit ?? BODY_LIMIT,
    limit: input.limit ?? null,
  };
}
