import { toWire } from "./case.ts";
import type { Operation } from "./contract/index.ts";
import { ConfigurationError } from "./errors.ts";

/** The parts of a request before they are put on the wire, in camelCase. */
export interface RequestParts {
  readonly params?: unknown;
  readonly query?: unknown;
  readonly body?: unknown;
}

/** A request as it goes out, without credentials. */
export interface WireRequest {
  /** Path with its parameters filled in, without the query: logs and errors may show it. */
  readonly path: string;
  /** Path and query. */
  readonly target: string;
  readonly body?: string;
  /** Values of the body and query that messages must not repeat. */
  readonly secrets: readonly string[];
}

const SECRET_KEY = /password|secret|token|code|^key$|^sign$/;

function secretsIn(value: unknown, key = ""): string[] {
  if (typeof value === "string") return SECRET_KEY.test(key) && value !== "" ? [value] : [];
  if (Array.isArray(value)) return value.flatMap((item) => secretsIn(item, key));
  if (typeof value === "object" && value !== null) {
    return Object.entries(value).flatMap(([name, item]) => secretsIn(item, name));
  }
  return [];
}

function record(value: unknown): Record<string, unknown> {
  return (value ?? {}) as Record<string, unknown>;
}

/** One escaped segment of a path. "." and ".." are refused: a URL resolves them, and would name another object. */
function segment(operation: Operation, name: string, value: unknown): string {
  const text = value === undefined || value === null ? "" : String(value);
  if (text === "" || text === "." || text === "..") {
    throw new ConfigurationError(`path parameter must be given, and not be "${text}"`, {
      field: [operation.id, name],
    });
  }
  return encodeURIComponent(text);
}

/** The body of a tag's removal: servers of 0.19 look for the tag there (rules D17), others in the path alone. */
function bodyOfTagRemoval({ method }: Operation, { tag }: Record<string, unknown>): object | undefined {
  return method === "DELETE" && tag !== undefined ? { tag } : undefined;
}

/**
 * Puts a request into the wire's form. Values are not checked: servers differ in what they allow.
 * @throws ConfigurationError when a path parameter is missing or cannot be part of a path
 */
export function buildRequest(operation: Operation, parts: RequestParts): WireRequest {
  const params = record(toWire(operation.params, parts.params ?? {}));
  const path = operation.path.replace(/\{([^}]+)\}/g, (_, name: string) =>
    segment(operation, name, params[name]),
  );
  const query = record(toWire(operation.query, parts.query ?? {}));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null) search.append(name, String(value));
  }
  const body = operation.body ? toWire(operation.body, parts.body) : bodyOfTagRemoval(operation, params);
  return {
    path,
    target: search.size > 0 ? `${path}?${search}` : path,
    ...(body !== undefined && { body: JSON.stringify(body) }),
    secrets: [...secretsIn(body), ...secretsIn(query)],
  };
}
