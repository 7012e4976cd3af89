import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import { Ajv, type AnySchema } from "ajv";
import { type Listening, listening } from "../../support/listening.ts";

type Json = Readonly<Record<string, unknown>>;

interface Operation {
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly { name: string; in: string; required: boolean; schema: AnySchema }[];
  readonly body?: AnySchema;
  readonly status: number;
  readonly answer: Schema;
}

interface Schema {
  readonly type?: string;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly enum?: readonly unknown[];
  readonly nullable?: boolean;
  readonly [keyword: string]: unknown;
}

/** GitHub's OpenAPI description of the operations that the pipelines use. recorded/excerpt.mjs creates this file. */
const { operations } = JSON.parse(
  readFileSync(new URL("../recorded/github-api.json", import.meta.url), "utf8"),
) as { operations: readonly Operation[] };

// Adds formats of OpenAPI 3.0 that JSON Schema does not have.
const ajv = new Ajv({ strict: false, validateFormats: false, coerceTypes: true });
const responses = new Ajv({ strict: false, validateFormats: false });

/** Converts a schema of OpenAPI 3.0 to JSON Schema, which has no `nullable`. */
function jsonSchema(schema: unknown): AnySchema {
  if (Array.isArray(schema)) return schema.map(jsonSchema) as unknown as AnySchema;
  if (typeof schema !== "object" || schema === null) return schema as AnySchema;
  const { nullable, ...others } = schema as Schema;
  const inner = Object.fromEntries(Object.entries(others).map(([key, value]) => [key, jsonSchema(value)]));
  return nullable === true ? { anyOf: [inner, { type: "null" }] } : inner;
}

/** Returns the validation errors of a value; an empty list if the value matches the schema. */
function faultsOf(validator: Ajv, schema: unknown, value: unknown): string[] {
  return validator.validate(jsonSchema(schema), value) ? [] : [validator.errorsText(validator.errors)];
}

/** A pull request comment, an issue comment or an issue. */
interface Written {
  readonly id: number;
  /** The number of the issue, or of the comment's issue or pull request. */
  readonly number: number;
  readonly login: string;
  body: string;
  state: string;
  title?: string;
}

/** The permission that each operation requires, from GitHub's documentation. */
const PERMISSIONS: Readonly<Record<string, string>> = {
  "GET /issues/{issue_number}/comments": "pull-requests: write | issues: write",
  "POST /issues/{issue_number}/comments": "pull-requests: write | issues: write",
  "PATCH /issues/comments/{comment_id}": "pull-requests: write",
  "GET /issues": "issues: write",
  "POST /issues": "issues: write",
  "PATCH /issues/{issue_number}": "issues: write",
  "GET /commits/{commit_sha}/pulls": "pull-requests: read",
  "GET /actions/workflows/{workflow_id}/runs": "actions: read",
};

export const BOT = "github-actions[bot]";

/** A fake GitHub API. It validates requests, and its own responses, against GitHub's OpenAPI description. */
export interface TestGithub extends Listening {
  readonly comments: Written[];
  readonly issues: Written[];
  readonly pulls: { number: number; head: string; merged?: string }[];
  /** The number of further lookups of a commit's pull request for which the fake GitHub API returns an empty list. */
  emptyPullLookups: number;
  readonly runs: { id: number; head: string; conclusion: string }[];
  /** The received requests, as `METHOD /path`. The paths are relative to the repository's API URL. */
  readonly requests: string[];
  /** Requests and responses that do not match GitHub's OpenAPI description. */
  readonly faults: string[];
  /** The permissions that the workflow grants to the running job. */
  permissions: Readonly<Record<string, string>>;
  /** The HTTP method of requests for which the fake GitHub API performs the change but returns an error. */
  failing?: string | undefined;
  /** The error responses to the next requests, in order. */
  readonly refusals: { status: number; headers?: Record<string, string> }[];
}

/** The token that the fake GitHub API accepts. */
export const GITHUB_TOKEN = "ghs_stand-in-0123456789";

export const REPOSITORY = "team/access";

/** Starts the fake GitHub API. */
export async function startGithub(): Promise<TestGithub> {
  const state = {
    comments: [] as Written[],
    issues: [] as Written[],
    pulls: [],
    runs: [],
    requests: [],
    refusals: [],
    emptyPullLookups: 0,
    faults: [] as string[],
    permissions: {} as Readonly<Record<string, string>>,
  } as unknown as TestGithub;
  const { faults } = state;
  let ids = 1000;
  const user = (login: string) => ({ login, id: login.length });
  const comment = ({ id, body, login }: Written) => ({
    id,
    body,
    user: user(login),
    html_url: `https://c/${id}`,
  });
  const issue = ({ number, body, login, ...one }: Written) => ({
    id: number,
    number,
    body,
    user: user(login),
    state: one.state,
    title: one.title ?? "",
    html_url: `https://i/${number}`,
  });
  const entryOf = (list: readonly Written[], key: "id" | "number", value: string | undefined) => {
    const one = list.find((written) => written[key] === Number(value));
    if (!one) throw new Error(`there is no ${value}`);
    return one;
  };
  const page = <T>(list: readonly T[], query: URLSearchParams) => {
    const [size, number] = [Number(query.get("per_page") ?? 30), Number(query.get("page") ?? 1)];
    return { items: list.slice((number - 1) * size, number * size), hasMore: list.length > number * size };
  };
  const write = (list: Written[], number: number, body: string, title?: string) => {
    const id = ids++;
    const entry = { id, number, login: BOT, body, state: "open", ...(title !== undefined && { title }) };
    list.push(entry);
    return entry;
  };
  const handlers: Record<
    string,
    (path: Record<string, string>, query: URLSearchParams, body: Json) => unknown
  > = {
    "GET /issues/{issue_number}/comments": ({ issue_number: number }) =>
      state.comments.filter((one) => one.number === Number(number)).map(comment),
    "POST /issues/{issue_number}/comments": ({ issue_number: number }, _, body) =>
      comment(write(state.comments, Number(number), String(body.body))),
    "PATCH /issues/comments/{comment_id}": ({ comment_id: id }, _, { body }) =>
      comment(Object.assign(entryOf(state.comments, "id", id), { body })),
    "GET /issues": (_, query) => state.issues.filter((one) => one.state === query.get("state")).map(issue),
    "POST /issues": (_, __, { body, title }) => issue(write(state.issues, ids, String(body), String(title))),
    "PATCH /issues/{issue_number}": ({ issue_number: number }, _, { state_reason: __, ...changed }) =>
      issue(Object.assign(entryOf(state.issues, "number", number), changed)),
    "GET /commits/{commit_sha}/pulls": ({ commit_sha: sha }) =>
      state.pulls
        .filter(({ head, merged }) => [head, merged].includes(sha ?? "") && !(state.emptyPullLookups-- > 0))
        .map(({ number, head, merged }) => ({
          number,
          head: { sha: head },
          state: merged ? "closed" : "open",
          merge_commit_sha: merged ?? null,
          merged_at: merged ? "2026-11-24T00:00:00Z" : null,
        })),
    "GET /actions/workflows/{workflow_id}/runs": (_, query) =>
      state.runs
        .filter(
          ({ head, conclusion }) => head === query.get("head_sha") && conclusion === query.get("status"),
        )
        .map(({ id, head }) => ({ id, head_sha: head, html_url: `https://r/${id}` })),
  };

  const respond = async (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? "", "http://stand-in");
    const send = (status: number, body: unknown, headers: Record<string, string> = {}) =>
      response
        .writeHead(status, { "content-type": "application/json", ...headers })
        .end(JSON.stringify(body));
    const at = matched(request.method ?? "", url.pathname);
    if (!at) {
      faults.push(`${request.method} ${url.pathname} is no operation`);
      return send(404, { message: "Not Found" });
    }
    const { operation, path, name } = at;
    const body = operation.body ? ((await json(request)) as Json) : {};
    state.requests.push(`${request.method} ${url.pathname.slice(`/repos/${REPOSITORY}`.length)}`);
    faults.push(
      ...requestFaults(operation, path, url.searchParams, body).map((fault) => `${name}: ${fault}`),
    );
    const refusal = state.refusals.shift();
    if (refusal) return send(refusal.status, { message: "refused" }, refusal.headers);
    if (request.headers.authorization !== `Bearer ${GITHUB_TOKEN}`)
      return send(401, { message: "Bad credentials" });
    const needs = PERMISSIONS[name]?.split(" | ") ?? [];
    const isPermitted = needs.some((need) => {
      const [scope = "", level] = need.split(": ");
      return state.permissions[scope] === level || state.permissions[scope] === "write";
    });
    if (!isPermitted) return send(403, { message: "Resource not accessible by integration" });
    const result = handlers[name]?.(path, url.searchParams, body);
    if (state.failing === request.method) return send(502, { message: "Server Error" });
    const isList = Array.isArray(result);
    const { items, hasMore } = isList ? page(result, url.searchParams) : { items: [], hasMore: false };
    const inRuns = name.startsWith("GET /actions");
    const content = isList ? (inRuns ? { total_count: result.length, workflow_runs: items } : items) : result;
    const full = filled(operation.answer, content);
    faults.push(
      ...faultsOf(responses, operation.answer, full).map((fault) => `the response to ${name}: ${fault}`),
    );
    send(operation.status, full, hasMore ? { link: `<${url}>; rel="next"` } : {});
  };
  const server = createServer((request, response) => {
    respond(request, response).catch((error: unknown) => {
      faults.push(String(error));
      response.writeHead(422).end();
    });
  });
  return Object.assign(state, await listening(server));
}

function matched(method: string, pathname: string) {
  for (const operation of operations) {
    const pattern = operation.path.replaceAll(/\{(\w+)\}/g, "(?<$1>[^/]+)");
    const groups = new RegExp(`^${pattern}$`).exec(pathname)?.groups;
    if (groups && operation.method === method) {
      const name = `${method} ${operation.path.slice("/repos/{owner}/{repo}".length)}`;
      return { operation, path: { ...groups }, name };
    }
  }
  return undefined;
}

function requestFaults(operation: Operation, path: Json, query: URLSearchParams, body: Json): string[] {
  const values: Record<string, Json> = { path, query: Object.fromEntries(query) };
  const unknown = [...query.keys()].filter((key) => !operation.parameters.some(({ name }) => name === key));
  const wrong = operation.parameters.flatMap(({ name, in: place, required, schema }) => {
    const value = values[place]?.[name];
    if (value === undefined) return required ? [`${name} is missing`] : [];
    const object = { type: "object", properties: { [name]: schema } };
    return faultsOf(ajv, object, { [name]: value }).map((fault) => `${name}: ${fault}`);
  });
  const wrongBody = operation.body === undefined ? [] : faultsOf(responses, operation.body, body);
  return [
    ...unknown.map((key) => `${key} is no parameter`),
    ...wrong,
    ...wrongBody.map((fault) => `the body: ${fault}`),
  ];
}

/** Completes a response: adds the smallest valid value for each required property that the value lacks. */
function filled(schema: Schema, value: unknown): unknown {
  const { anyOf, oneOf, allOf } = schema as Record<string, readonly Schema[] | undefined>;
  if (value === undefined && schema.nullable) return null;
  if (value === null) return null;
  const [first] = anyOf ?? oneOf ?? [];
  if (first) return filled(first, value);
  if (allOf) return allOf.reduce<unknown>((sum, part) => filled(part, sum), value);
  if (value === undefined && schema.enum) return schema.enum[0];
  if (schema.type === "array" || schema.items) {
    return ((value ?? []) as unknown[]).map((item) => filled(schema.items ?? {}, item));
  }
  if (schema.properties) {
    const own = (value ?? {}) as Record<string, unknown>;
    const names = new Set([...(schema.required ?? []), ...Object.keys(own)]);
    return Object.fromEntries(
      [...names].map((name) => [name, filled(schema.properties?.[name] ?? {}, own[name])]),
    );
  }
  if (value !== undefined) return value;
  const least: Record<string, unknown> = { string: "", integer: 0, number: 0, boolean: false, object: {} };
  return least[schema.type ?? "object"];
}
