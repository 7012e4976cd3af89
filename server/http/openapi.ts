import {
  type AuthKind,
  IDEMPOTENCY_KEY,
  idempotencyKey,
  message,
  models,
  type Operation,
} from "@gatehouse-access/sdk/contract";
import { z } from "zod";

type Json = Record<string, unknown>;

const SECURITY: Readonly<Partial<Record<AuthKind, string>>> = {
  jwt: "user",
  apikey: "apiKey",
  device: "device",
};
const securitySchemes = {
  user: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "JWT",
    description: "Token of a login, for 72 hours",
  },
  apiKey: { type: "apiKey", in: "header", name: "X-API-KEY", description: "Wins over a token sent with it" },
  device: { type: "http", scheme: "bearer", bearerFormat: "JWT", description: "Token of a device's agent" },
};

/** Turns zod schemas into those of the document, and collects the named ones. */
class Components {
  readonly schemas: Json = {};

  schemaOf(schema: z.ZodType, io: "input" | "output"): Json {
    const {
      $schema: _,
      $defs,
      ...own
    } = z.toJSONSchema(schema, {
      io,
      metadata: models,
      unrepresentable: "any",
      // `describe` keeps its text in zod's own registry, not in that of the named schemas.
      override: ({ zodSchema, jsonSchema }) => {
        const description = z.globalRegistry.get(zodSchema)?.description;
        if (description) jsonSchema.description = description;
      },
    });
    for (const [name, definition] of Object.entries($defs ?? {})) this.schemas[name] = named(definition);
    return named(own);
  }
}

/** References to named schemas, from where zod puts these to where OpenAPI has them. */
function named(schema: object): Json {
  const text = JSON.stringify(schema, (key, value) =>
    key === "id" && typeof value === "string" ? undefined : value,
  );
  return JSON.parse(text.replaceAll('"#/$defs/', '"#/components/schemas/'));
}

/** An OpenAPI 3.1 document of the operations, from the contract alone. */
export function openApiDocument(operations: readonly Operation[]): Json {
  const components = new Components();
  const error = components.schemaOf(z.array(message), "output").items as Json;
  const paths: Record<string, Json> = {};
  for (const operation of operations) {
    for (const path of [operation.path, ...operation.aliases]) {
      const alias = path !== operation.path;
      paths[path] = {
        ...paths[path],
        [operation.method.toLowerCase()]: describe(operation, alias, components, error),
      };
    }
  }
  return {
    openapi: "3.1.0",
    info: { title: "Remote Access Management Service API", version: "0.19.0" },
    paths,
    components: { schemas: components.schemas, securitySchemes },
  };
}

function describe(operation: Operation, alias: boolean, components: Components, error: Json): Json {
  const { success } = operation;
  const content = (schema: Json) => ({ content: { "application/json": { schema } } });
  const headers = Object.fromEntries(success.headers.map((name) => [name, { schema: { type: "string" } }]));
  return {
    // Ids must be unique in a document; an alias is another entry.
    operationId: alias ? `${operation.id}Alias` : operation.id,
    tags: [operation.part],
    summary: operation.summary,
    ...(operation.minRole && { description: `Needs the role ${operation.minRole} or above.` }),
    parameters: [
      ...parameters("path", operation.params.shape, components),
      ...parameters("query", operation.query.shape, components),
      ...parameters("header", operation.idempotencyKey ? CREATION_HEADER : {}, components),
    ],
    ...(operation.body && {
      requestBody: { required: true, ...content(components.schemaOf(operation.body, "input")) },
    }),
    responses: {
      [success.status]: {
        description: success.mayBeEmpty ? "Done; the body may be left out" : "Done",
        ...(success.headers.length > 0 && { headers }),
        ...(success.body && content(components.schemaOf(success.body, "output"))),
      },
      ...Object.fromEntries(
        Object.entries(errorsOf(operation)).map(([status, description]) => [
          status,
          { description, ...content(error) },
        ]),
      ),
    },
    security: operation.auth.flatMap((kind) => (SECURITY[kind] ? [{ [SECURITY[kind]]: [] }] : [])),
  };
}

const errorsOf = ({ limit, errors }: Operation): Readonly<Record<number, string>> =>
  limit ? { 429: "too many requests; Retry-After says for how many seconds", ...errors } : errors;

const CREATION_HEADER = { [IDEMPOTENCY_KEY]: idempotencyKey.optional() };

function parameters(
  place: "path" | "query" | "header",
  shape: Readonly<Record<string, z.ZodType>>,
  components: Components,
): Json[] {
  return Object.entries(shape).map(([name, schema]) => ({
    name,
    in: place,
    required: !schema.safeParse(undefined).success,
    schema: components.schemaOf(schema, "input"),
  }));
}
