import type { IncomingHttpHeaders } from "node:http";
import { Readable } from "node:stream";
import {
  DECLARED_BY,
  type Declaration,
  declarationOf,
  declaredByHeader,
  type Edition,
  IDEMPOTENCY_KEY,
  idempotencyKey,
  isAcknowledged,
  JSON_TYPE,
  LOCKOUT_GUARD,
  lockoutGuardHeader,
  type ObjectKind,
  type Operation,
  SERVICE_CODES,
  takesDeclaredBy,
  takesLockoutGuard,
  writesObject,
} from "@gatehouse-access/sdk/contract";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { digestOf } from "../secrets/digest.ts";
import type { Services } from "../services.ts";
import { identify } from "./access/authorize.ts";
import { type Caller, type IdentityOf, type Member, ownerOf } from "./access/identity.ts";
import { serializerOf } from "./contract/serialization.ts";
import { parse, parseBody, parseParams, readQuery } from "./contract/validation.ts";
import type { Behavior, BodyOf, Context, Operations } from "./handler.ts";
import { itemSchema, ListInPieces, serializeInPieces } from "./limits/pieces.ts";
import { Conversation, openWebSocket, WebSocketHandler } from "./listener/webSockets.ts";

const EDITIONS: readonly Edition[] = ["community", "enterprise", "cloud"];

/**
 * Returns the operations that an instance of the edition serves. An operation of a larger edition has no route, unless
 * the contract declares `routed: "always"` (rules section 19).
 */
export function servedOperations(operations: Operations, edition: Edition): Operation[] {
  const level = EDITIONS.indexOf(edition);
  return Object.values(operations).filter(
    ({ edition, routed }) => routed === "always" || EDITIONS.indexOf(edition) <= level,
  );
}

/** Returns the paths of an operation in router syntax. */
const routesOf = ({ path, aliases }: Operation): string[] =>
  [path, ...aliases].map((url) => url.replaceAll(/\{([^}]+)\}/g, (_, name: string) => `:${routeName(name)}`));

/** Returns the paths that only other editions serve, in router syntax. */
export function absentPaths(operations: Operations, edition: Edition): string[] {
  const served = new Set(servedOperations(operations, edition));
  return Object.values(operations)
    .filter((operation) => !served.has(operation))
    .flatMap(routesOf);
}

/** Adds a route for every path of the operations. */
export function serveOperations(
  app: FastifyInstance,
  services: Services,
  operations: readonly Operation[],
  behavior: Behavior,
): void {
  for (const operation of operations) {
    // The cast is necessary. The type of the map connects each id with its operation, but a loop over the ids loses
    // this connection.
    const handler = (behavior.handlers as Record<string, AnyHandler>)[operation.id];
    if (handler === undefined) throw new Error(`Operation ${operation.id} has no handler`);
    const run = writesObject(operation) ? writerOf(operation, behavior, handler) : handler;
    const { status, body, mediaType } = operation.success;
    const item = mediaType === JSON_TYPE ? itemSchema(body) : undefined;
    const serializeItem = item && serializerOf(item);
    const served = { operation, behavior, run, named: paramNames(operation), serializeItem };
    for (const url of routesOf(operation)) {
      app.route({
        method: operation.method,
        url,
        config: { operation },
        bodyLimit: operation.bodyLimit,
        ...(body &&
          mediaType === JSON_TYPE && {
            schema: { response: { [status]: {} } },
            serializerCompiler: () => serializerOf(body),
          }),
        handler: (request, reply) => respond(services, served, request, reply),
      });
    }
  }
}

/** Returns the name of a path parameter for the router. The name contains no hyphen, because a hyphen would end it. */
const routeName = (name: string): string => name.replaceAll("-", "_");

/** Renames the router's path parameters to the names of the contract. */
function paramNames(operation: Operation): (given: unknown) => unknown {
  const names = Object.keys(operation.params.shape);
  if (names.every((name) => routeName(name) === name)) return (given) => given;
  return (given) =>
    Object.fromEntries(names.map((name) => [name, (given as Record<string, unknown>)[routeName(name)]]));
}

/** Executes an operation for an HTTP request. */
type Runner = (context: Context<Operation>, request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;

/** The behavior of an operation. The compiler has already checked that the type of the behavior fits the operation. */
type AnyHandler = (context: unknown) => Promise<unknown>;

interface Served {
  readonly operation: Operation;
  readonly behavior: Behavior;
  readonly run: Runner;
  readonly named: (params: unknown) => unknown;
  /** Serializes an item of the response. Undefined if the response is not a list. */
  readonly serializeItem: ((item: unknown) => string) | undefined;
}

async function respond(
  services: Services,
  served: Served,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const { operation, behavior, run, named, serializeItem } = served;
  if (operation.success.alternatives.length > 0) addVary(reply, "Accept");
  const params = parseParams(operation, named(request.params));
  const query = readQuery(operation, request.query);
  const body = parseBody(operation, request.body);
  const context = {
    services,
    params,
    query,
    // The cast is necessary, because the type of the body depends on the operation's schema, and the compiler has no
    // type for it here.
    body: body as BodyOf<Operation>,
    identity: request.identity as IdentityOf<Operation>,
    request: request.facts,
    creationKey: readCreationKey(operation, request.headers),
    declaration: readDeclaration(operation, request.headers),
    repeated: () => {},
    // Create the signal when the handler accesses it, because few handlers need the signal.
    get signal() {
      return request.signal;
    },
    log: request.log,
    header: (name: string, value: string | number) => void reply.header(name, String(value)),
  };
  await behavior.checkBilling(operation.id, context);
  const result = await run(context, request, reply);
  if (operation.object !== null && !writesObject(operation)) setRevision(reply, revisionIn(result));
  if (result instanceof Conversation || result instanceof WebSocketHandler) {
    return openWebSocket(request, reply, result, operation.bodyLimit);
  }
  reply.code(operation.success.status);
  if (result === undefined) {
    return isAcknowledged(operation)
      ? reply.type(JSON_TYPE).send(acknowledgementOf(operation))
      : reply.send();
  }
  const isArray = Array.isArray(result) || result instanceof ListInPieces;
  if (serializeItem !== undefined && isArray && request.identity !== null) {
    return sendList(reply, await serializeInPieces(result, ownerOf(request.identity), serializeItem));
  }
  const { mediaType } = operation.success;
  if (mediaType !== JSON_TYPE) reply.type(`${mediaType}; charset=utf-8`);
  return reply.send(result);
}

/** Sends a list. Writes the pieces of a long list one at a time, because a long write blocks the event loop. */
function sendList(reply: FastifyReply, list: string | readonly Buffer[]): FastifyReply {
  reply.type(JSON_TYPE);
  if (typeof list === "string") return reply.send(list);
  const length = list.reduce((sum, piece) => sum + piece.length, 0);
  return reply.header("Content-Length", length).send(Readable.from(list));
}

/**
 * Returns the body of a write that returns no object. The body contains a code. The code proves to clients that this
 * service sent the response.
 */
const acknowledgementOf = ({ method }: Operation) => ({
  code: method === "DELETE" ? SERVICE_CODES.deleted : SERVICE_CODES.done,
});

/**
 * Returns the digest of the request's Idempotency-Key, because the key itself is never stored. Returns null if the
 * header is absent or the operation does not accept it.
 * @throws InvalidError the key is not 1 to 255 visible ASCII characters
 */
function readCreationKey(operation: Operation, headers: IncomingHttpHeaders): string | null {
  const value = headers[IDEMPOTENCY_KEY.toLowerCase()];
  if (!operation.idempotencyKey || value === undefined) return null;
  return digestOf(parse(idempotencyKey, value, IDEMPOTENCY_KEY));
}

/**
 * Returns the program resource that declares the object, according to the header `Gatehouse-Declared-By`. Returns null
 * if the header is absent or the operation does not accept it.
 * @throws InvalidError the value does not match the header's schema
 */
function readDeclaration(operation: Operation, headers: IncomingHttpHeaders): Declaration | null {
  const value = headers[DECLARED_BY.toLowerCase()];
  if (value === undefined || !takesDeclaredBy(operation)) return null;
  return declarationOf(parse(declaredByHeader, value, DECLARED_BY));
}

/**
 * Returns true if the request header requires the lockout guard, and the operation accepts this header.
 * @throws InvalidError the value of the header is not `on`
 */
function readLockoutGuard(operation: Operation, headers: IncomingHttpHeaders): boolean {
  const value = headers[LOCKOUT_GUARD.toLowerCase()];
  if (value === undefined || !takesLockoutGuard(operation)) return false;
  return parse(lockoutGuardHeader, value, LOCKOUT_GUARD) === "on";
}

/** Adds the name of a request header to `Vary`, because the response depends on that header. */
function addVary(reply: FastifyReply, name: string): void {
  const named = reply.getHeader("Vary");
  reply.header("Vary", named === undefined ? name : `${String(named)}, ${name}`);
}

/** Wraps a handler so that it runs as the write of an object. */
function writerOf(
  operation: Operation & { readonly object: ObjectKind },
  behavior: Behavior,
  handler: AnyHandler,
): Runner {
  return async (context, request, reply) => {
    const { services, params, body, creationKey, declaration } = context;
    const { result, revision } = await behavior.write(services, {
      operation,
      // The identity is never null here, because an operation that changes an object is never public.
      sender: request.identity as Caller | Member,
      params,
      body: body as object | undefined,
      ifMatch: request.headers["if-match"],
      isGuarded: readLockoutGuard(operation, request.headers),
      creationKey,
      declaration,
      facts: context.request,
      identify: (inside) => identify(inside, operation, request),
      // The new context inherits from the old context instead of copying its properties. A copy would call the getter
      // that creates the signal. The type of the identity depends on the operation's scope.
      run: (inside, identity, report) =>
        handler(Object.assign(Object.create(context), report, { services: inside, identity })),
    });
    setRevision(reply, revision);
    return result;
  };
}

function setRevision(reply: FastifyReply, revision: string | undefined): void {
  if (revision !== undefined) reply.header("ETag", `"${revision}"`);
}

/** Returns the revision of the object in an operation's result. Returns undefined if the result has no revision. */
function revisionIn(result: unknown): string | undefined {
  return (result as { readonly revision?: string } | undefined)?.revision;
}
