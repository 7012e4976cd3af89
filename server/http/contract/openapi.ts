import {
  type AuthKind,
  acceptedCredentials,
  acknowledgement,
  billing,
  DECLARED_BY,
  declaredByHeader,
  IDEMPOTENCY_KEY,
  IF_MATCH,
  idempotencyKey,
  ifMatch,
  isAcknowledged,
  JSON_TYPE,
  LOCKOUT_GUARD,
  lockoutGuardHeader,
  message,
  models,
  notFound,
  type Operation,
  TOTAL_COUNT,
  takesDeclaredBy,
  takesIfMatch,
  takesLockoutGuard,
} from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import { FIELD_NAME_ERRORS, isList, MOVED_INTO_BOUNDS, namesObject } from "./validation.ts";

const SECURITY: Readonly<Partial<Record<AuthKind, string>>> = {
  jwt: "user",
  apikey: "apiKey",
  device: "device",
  workload: "workload",
};
const securitySchemes = {
  user: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "JWT",
    description: "Token of a login, valid for 72 hours",
  },
  apiKey: {
    type: "apiKey",
    in: "header",
    name: "X-API-KEY",
    description: "Takes precedence over a token in the same request",
  },
  device: { type: "http", scheme: "bearer", bearerFormat: "JWT", description: "Token of a device's agent" },
  workload: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "JWT",
    description: "Token of a trusted workload's session, valid for 15 minutes",
  },
};

const headers = {
  "X-Request-ID": {
    description: "Id of the request, also in the service's log",
    required: true,
    schema: { type: "string", format: "uuid" },
  },
  [TOTAL_COUNT]: {
    description: "Number of objects in all pages",
    required: true,
    schema: { type: "integer", minimum: 0 },
  },
  "X-Account-Lockout": {
    description: "Unix second at which the lockout of this user from this source ends; 0 without a lockout",
    schema: { type: "integer", minimum: 0 },
  },
  ETag: {
    description: "Revision of the object; absent when the operation deleted it",
    schema: { type: "string", pattern: '^"[^"]+"$' },
  },
  Vary: {
    description: "Includes `Accept`, which selects the media type of the response",
    required: true,
    schema: { type: "string" },
  },
  "X-Expires-At": {
    description: "Unix second until which the recovery code still disables MFA",
    schema: { type: "integer", minimum: 0 },
  },
  "X-MFA-Token": {
    description: "With 401: the password is correct, and a second factor is required",
    schema: { type: "string", format: "uuid" },
  },
};

const DESCRIPTION =
  "Access policy as code: remote SSH access to devices. Errors are `{message}`. A method that a path does not " +
  "support returns 405. An unknown path returns 404, without the code of a 404 about an object.";

/** Builds the OpenAPI 3.1 document of the operations. Uses only the contract. */
export function openApiDocument(operations: readonly Operation[]): Json {
  const components = new Components();
  const error = components.schemaOf(z.array(message), "output").items as Json;
  const paths: Record<string, Json> = {};
  for (const operation of operations) {
    for (const path of [operation.path, ...operation.aliases]) {
      paths[path] = {
        ...paths[path],
        [operation.method.toLowerCase()]: describe(operation, path, components, error),
      };
    }
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Remote Access Management Service API",
      version: "0.19.0",
      description: DESCRIPTION,
      license: { name: "Apache 2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    tags: [...new Set(operations.map(({ part }) => part))].map((name) => ({ name })),
    paths,
    components: { schemas: components.schemas, securitySchemes, headers },
  };
}

const content = (schema: Json, mediaType = JSON_TYPE, texts: readonly string[] = []): Json => ({
  content: {
    [mediaType]: { schema },
    ...Object.fromEntries(texts.map((type) => [type, { schema: { type: "string" } }])),
  },
});

/**
 * Returns the operation id for a path of an operation. The document lists each alias of a path as a separate operation,
 * and each operation of the document needs a unique id.
 */
function operationId({ id, aliases }: Operation, path: string): string {
  const alias = aliases.indexOf(path);
  if (alias < 0) return id;
  return alias === 0 ? `${id}Alias` : `${id}Alias${alias + 1}`;
}

function describe(operation: Operation, path: string, components: Components, error: Json): Json {
  const { body, minRole } = operation;
  return {
    operationId: operationId(operation, path),
    tags: [operation.part],
    summary: operation.summary,
    ...(minRole && { description: `Requires the role ${minRole} or above.` }),
    parameters: [
      ...parameters("path", operation.params.shape, components),
      ...parameters("query", operation.query.shape, components),
      ...parameters("header", operation.idempotencyKey ? CREATION_HEADER : {}, components),
      ...parameters("header", takesIfMatch(operation) ? CONDITION_HEADER : {}, components),
      ...parameters("header", takesDeclaredBy(operation) ? DECLARATION_HEADER : {}, components),
      ...parameters("header", takesLockoutGuard(operation) ? GUARD_HEADER : {}, components),
    ],
    ...(body && {
      // The body is required only if an empty object is invalid, because a missing body is treated as an empty object.
      requestBody: {
        required: !body.safeParse({}).success,
        ...content(components.schemaOf(body, "input")),
      },
    }),
    responses: responses(operation, components, error),
    security: acceptedCredentials(operation).flatMap((kind) =>
      SECURITY[kind] ? [{ [SECURITY[kind]]: [] }] : [],
    ),
  };
}

function describeSuccess({ status, mayBeEmpty }: Operation["success"]): string {
  if (status === 101) return "A WebSocket";
  return mayBeEmpty ? "Done; the response may have no body" : "Done";
}

function responses(operation: Operation, components: Components, error: Json): Json {
  const { success } = operation;
  const fieldNames = { anyOf: [{ type: "array", items: { type: "string" } }, error] };
  const errors = { ...commonErrors(operation), ...operation.errors };
  return {
    [success.status]: {
      description: describeSuccess(success),
      headers: headerReferences([
        ...success.headers,
        ...(operation.object === null ? [] : ["ETag"]),
        ...(success.alternatives.length > 0 ? ["Vary"] : []),
      ]),
      ...(isAcknowledged(operation) && content(components.schemaOf(acknowledgement, "output"))),
      ...(success.body &&
        content(components.schemaOf(success.body, "output"), success.mediaType, success.alternatives)),
    },
    ...Object.fromEntries(
      Object.entries(errors).map(([status, description]) => {
        const named = FIELD_NAME_ERRORS.has(operation.id) && ["400", "409"].includes(status);
        const own = OWN_BODIES[status];
        const schema = own ? components.schemaOf(own, "output") : error;
        return [
          status,
          {
            description,
            headers: headerReferences(success.headers.filter((name) => name !== TOTAL_COUNT)),
            ...content(named ? fieldNames : schema),
          },
        ];
      }),
    ),
    ...Object.fromEntries(
      Object.entries(CONNECTION_ERRORS).map(([status, description]) => [
        status,
        { description, ...content(CONNECTION_ERROR) },
      ]),
    ),
  };
}

/** The bodies, by status, of the service's own errors that have fields in addition to the message. */
const OWN_BODIES: Readonly<Record<string, z.ZodType>> = { 404: notFound, 424: billing.billingError };

/**
 * Body of the error responses that Node and Fastify send by themselves. These bodies contain other fields in addition
 * to the message.
 */
const CONNECTION_ERROR = {
  type: "object",
  properties: { message: { type: "string" } },
  required: ["message"],
};

const headerReferences = (names: readonly string[]): Json =>
  Object.fromEntries(
    ["X-Request-ID", ...names].map((name) => [name, { $ref: `#/components/headers/${name}` }]),
  );

const CREATION_HEADER = { [IDEMPOTENCY_KEY]: idempotencyKey.optional() };
const CONDITION_HEADER = { [IF_MATCH]: ifMatch.optional() };
const DECLARATION_HEADER = { [DECLARED_BY]: declaredByHeader.optional() };
const GUARD_HEADER = { [LOCKOUT_GUARD]: lockoutGuardHeader.optional() };

function parameters(
  place: "path" | "query" | "header",
  shape: Readonly<Record<string, z.ZodType>>,
  components: Components,
): Json[] {
  return Object.entries(shape).map(([name, schema]) => ({
    name,
    in: place,
    required: !schema.safeParse(undefined).success,
    // An empty parameter is treated as absent (rules section 6).
    ...(place === "query" && schema.safeParse(undefined).success && { allowEmptyValue: true }),
    schema: parameterSchema(name, components.schemaOf(schema, "input")),
  }));
}

function parameterSchema(name: string, schema: Json): Json {
  if (!MOVED_INTO_BOUNDS.has(name)) return schema;
  const { minimum, maximum, ...rest } = schema;
  return {
    ...rest,
    description: `${rest.description}; ${minimum} to ${maximum}; other values are clamped to these limits`,
  };
}

const MALFORMED = "a value is not allowed, or the request is malformed";
const NOT_ALLOWED = "permission denied for the credential's kind, namespace or role";
const NOT_FOUND = "an object that the request refers to does not exist";
const CONTENT_TYPE = "the body's content type is malformed or not application/json";
const TOO_MANY = "too many requests; retry after the seconds in Retry-After";
const WRONG_TYPE = "the body is not JSON, or a value has the wrong JSON type";

/**
 * Descriptions, by status, of HTTP errors that every operation may return. These errors occur before the service has
 * read the request, so the responses have no `X-Request-ID`. Only the error 503 can also occur later.
 */
export const CONNECTION_ERRORS: Readonly<Record<number, string>> = {
  408: "the request took longer than 30 seconds to arrive",
  431: "request line and headers are larger than 64 KiB",
  503: "the database is unavailable or the service is overloaded: retry after the seconds in Retry-After; or the service is being stopped",
};

/**
 * Returns descriptions, by status, of the errors that every operation of this kind can return (rules sections 1, 6 and
 * 8). The contract lists only the errors that clients need to distinguish.
 */
export function commonErrors(operation: Operation): Readonly<Record<number, string>> {
  const errors: Record<number, string> = { 400: MALFORMED };
  if (operation.limit) errors[429] = TOO_MANY;
  if (operation.scope !== "public") {
    errors[403] = NOT_ALLOWED;
    if (operation.method !== "GET") errors[404] = NOT_FOUND;
  }
  if (namesObject(operation)) errors[404] = NOT_FOUND;
  // The service reads the body of a request even if the operation has no body.
  if (operation.method !== "GET") {
    errors[413] = `the body is larger than ${operation.bodyLimit / 1024} KiB`;
    errors[415] = CONTENT_TYPE;
  }
  if (operation.body || isList(operation)) errors[422] = WRONG_TYPE;
  return errors;
}

/** A JSON object in the OpenAPI document. */
type Json = Record<string, unknown>;

/** Converts zod schemas to schemas of the OpenAPI document, and collects the named schemas. */
class Components {
  readonly schemas: Json = {};

  /**
   * Returns the OpenAPI schema of a zod schema.
   * @param io `input` if clients send the value, `output` if clients receive it; the two schemas have different
   *   defaults and limits
   */
  schemaOf(schema: z.ZodType, io: "input" | "output"): Json {
    const {
      $schema: _,
      $defs,
      ...own
    } = z.toJSONSchema(schema, {
      io,
      metadata: models,
      unrepresentable: "any",
      override: ({ zodSchema, jsonSchema }) => {
        if (zodSchema._zod.def.type === "catch") dropLimits(jsonSchema);
        // Zod's own registry contains the descriptions and the rules of refinements. The registry of the models does
        // not contain them.
        Object.assign(jsonSchema, z.globalRegistry.get(zodSchema));
      },
    });
    for (const [name, definition] of Object.entries($defs ?? {})) this.schemas[name] = named(definition);
    return named(own);
  }
}

/**
 * Removes the list of allowed values (`enum`) from the schema of a field. Use this function for fields for which
 * clients may send any value, because the service replaces an invalid value with a valid one.
 */
function dropLimits(schema: z.core.JSONSchema.BaseSchema): void {
  delete schema.enum;
}

/** Converts zod's references to named schemas to OpenAPI references. */
function named(schema: object): Json {
  const text = JSON.stringify(schema, (key, value) =>
    key === "id" && typeof value === "string" ? undefined : value,
  );
  return JSON.parse(text.replaceAll('"#/$defs/', '"#/components/schemas/'));
}
