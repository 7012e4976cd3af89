import { createServer, type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import { type Listed, listed } from "../contract/listed.ts";
import { listening } from "./listening.ts";

/** Optional reductions of responses. The specification allows responses with and without them. */
interface SparseOptions {
  /** Error responses have no body, like most error responses of real servers. */
  readonly emptyErrors?: boolean;
  /** Lists have no total number of items, since the specification does not define one (rules D45). */
  readonly withoutTotals?: boolean;
  /** Lists omit the members of namespaces, as newer services do. The response for a single namespace contains them. */
  readonly withoutListedMembers?: boolean;
}

export interface SparseService {
  readonly url: string;
  stop(): Promise<void>;
}

/** The fields of an object. The value of a field is true, or contains the fields of the object in it. */
type Fields = { readonly [field: string]: true | Fields };

const fields = (names: string, inner: Fields = {}): Fields => ({
  ...Object.fromEntries(names.split(" ").map((name) => [name, true as const])),
  ...inner,
});

/**
 * The fields of each model in the 0.19.0 specification, by the model's name in the operation list. If servers of 0.19.0
 * send another field name than the specification has, this table has the servers' name (rules section 21: D2, D3, D4,
 * D5, D6).
 */
const MODELS: Readonly<Record<string, Fields | true>> = {
  string: true,
  UserSession: fields("token id origin user name email recovery_email tenant role mfa max_namespaces"),
  DeviceAuth: fields("uid token name namespace"),
  InstanceInfo: fields("version setup", {
    endpoints: fields("ssh api"),
    authentication: fields("local saml"),
  }),
  Device: fields(
    "uid name public_key tenant_id last_seen online namespace status status_updated_at created_at remote_addr tags acceptable",
    {
      identity: fields("mac"),
      info: fields("id pretty_name version arch platform"),
      position: fields("latitude longitude"),
    },
  ),
  Namespace: fields("name owner tenant_id max_devices devices_count created_at billing", {
    members: fields("id added_at expires_at role status email"),
    settings: fields("session_record connection_announcement"),
  }),
  PublicKey: fields("data fingerprint created_at tenant_id name username", {
    filter: fields("hostname tags"),
  }),
  FirewallRule: fields("id tenant_id action active priority source_ip username", {
    filter: fields("hostname tags"),
  }),
  Session: fields(
    "uid device_uid username ip_address started_at last_seen active authenticated recorded type term",
    { device: true, events: true, position: fields("latitude longitude") },
  ),
  ApiKey: fields("tenant_id created_by role name expires_in created_at updated_at"),
  ApiKeyCreated: fields("id tenant_id user_id role name expires_in created_at updated_at"),
};

/** Fields that real servers omit from some responses (models section 5). */
const OMITTED: Readonly<Record<string, readonly string[]>> = { createPublicKey: ["created_at"] };

/** Names of the request and response headers that the specification or HTTP itself defines. */
const REQUEST_HEADERS = ["authorization", "x-api-key", "content-type", "accept", "user-agent"];
const ANSWER_HEADERS = ["content-type", "x-account-lockout", "x-mfa-token", "x-expires-at", "x-total-count"];

const operations = [...listed.values()]
  .flatMap((operation) =>
    [operation.path, ...operation.aliases].map((path) => ({
      operation,
      pattern: new RegExp(`^${path.replaceAll(/\{[^}]+\}/g, "[^/]+")}$`),
      parameters: path.split("{").length,
    })),
  )
  // Tries paths with fewer parameters first: `/accept` before `/{status}`.
  .sort((left, right) => left.parameters - right.parameters);

/**
 * Starts a proxy that reduces the service at `target` to the minimum that programs require. It has only the operations
 * of the operation list, no revisions and no idempotency keys. Like servers of 0.19, it ignores the filter of public
 * keys (rules D41), and reads the tag to remove from a device in the request body (D17).
 */
export async function startSparseService(
  target: string,
  options: SparseOptions = {},
): Promise<SparseService> {
  const server = createServer(async (incoming, outgoing) => {
    const { method = "GET", url = "/" } = incoming;
    const { pathname, searchParams } = new URL(url, target);
    const match = operations.find(
      ({ operation, pattern }) => operation.method === method && pattern.test(pathname),
    );
    if (!match) {
      outgoing.writeHead(404).end();
      return;
    }
    const { operation } = match;
    if (operation.id === "getPublicKeys") searchParams.delete("filter");
    try {
      const path = searchParams.size > 0 ? `${pathname}?${searchParams}` : pathname;
      const sent = await bodyText(incoming);
      if (operation.id === "deleteDeviceTag" && !sent.includes('"tag"')) {
        outgoing.writeHead(400).end();
        return;
      }
      const answer = await passOn(target, incoming, path, sent);
      const { status } = answer;
      const error = options.emptyErrors ? "" : answer.body;
      const body = status >= 400 ? error : sparse(operation, answer.body, options);
      const headers = only(ANSWER_HEADERS, answer.headers);
      if (options.withoutTotals) delete headers["x-total-count"];
      if (body === "") delete headers["content-type"];
      outgoing.writeHead(status, headers).end(body);
    } catch {
      incoming.socket.destroy();
    }
  });
  return listening(server);
}

const only = (names: readonly string[], headers: IncomingHttpHeaders): IncomingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => names.includes(name)));

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

async function passOn(
  target: string,
  incoming: IncomingMessage,
  path: string,
  body: string,
): Promise<Answer> {
  const headers = { ...only(REQUEST_HEADERS, incoming.headers), "content-length": Buffer.byteLength(body) };
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  request(new URL(path, target), { method: incoming.method ?? "GET", headers }, resolve)
    .on("error", reject)
    .end(body);
  const answer = await promise;
  return { status: answer.statusCode ?? 502, headers: answer.headers, body: await bodyText(answer) };
}

async function bodyText(message: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}

function sparse(operation: Listed, body: string, options: SparseOptions): string {
  const name = operation.success.body?.replace("array of ", "");
  if (name === undefined || body === "") return "";
  const model = MODELS[name];
  if (model === undefined) throw new Error(`MODELS has no fields of ${name}. Add them.`);
  const value = pick(JSON.parse(body), model, OMITTED[operation.id] ?? []);
  if (options.withoutListedMembers && operation.id === "getNamespaces") {
    return JSON.stringify((value as object[]).map((namespace) => ({ ...namespace, members: [] })));
  }
  return JSON.stringify(value);
}

function pick(value: unknown, model: true | Fields, omitted: readonly string[] = []): unknown {
  if (Array.isArray(value)) return value.map((item) => pick(item, model, omitted));
  if (model === true || typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(([name]) => name in model && !omitted.includes(name));
  return Object.fromEntries(kept.map(([name, inner]) => [name, pick(inner, model[name] ?? true)]));
}
