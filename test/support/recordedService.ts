import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { type Listening, listening } from "./listening.ts";

interface Exchange {
  readonly label: string;
  readonly request: { readonly method: string; readonly path: string };
  readonly response: {
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: unknown;
  };
}

/** A service that replays recorded answers of another release. */
export interface RecordedService extends Listening {
  /** Requests so far, as `METHOD /path` without the query. */
  readonly requests: readonly string[];
}

const exchanges = ["recorded-0.27.jsonl", "recorded-0.27-access.jsonl"].flatMap((file) =>
  readFileSync(new URL(`../fixtures/${file}`, import.meta.url), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Exchange),
);

/** Returns the labels that begin with a text, such as `legacy key:` for the answers to an API key. */
export const labelsOf = (beginning: string): string[] =>
  exchanges.map(({ label }) => label).filter((label) => label.startsWith(beginning));

/** Answers that were not recorded, derived from recorded ones. */
const derived: Readonly<Record<string, () => Exchange>> = {
  "no invitations": () => answering("list invitations", 200, () => []),
  "alice declined": () =>
    answering("list invitations", 200, (list) =>
      (list as { user: { email: string } }[])
        .filter(({ user }) => user.email === "alice@example.com")
        .map((invitation) => ({ ...invitation, status: "rejected" })),
    ),
  "sessions of users": () => sessionsOf({ owner: "root", alice: "root", other: "deploy" }),
  "a session that no policy allows": () => sessionsOf({ alice: "deploy" }),
  "sessions in ascending order": () => reversed(sessionsOf({ owner: "root", alice: "root" })),
  "info of a newer version": () =>
    answering("info", 200, (info) => ({ ...(info as object), version: "v0.31.0" })),
  "firewall rules do not exist": () => ({
    label: "firewall rules do not exist",
    request: { method: "GET", path: "/api/firewall/rules" },
    response: { status: 404, headers: {}, body: { message: "Not Found" } },
  }),
  "a mode of a later version": () =>
    answering("identity user: GET /api/namespaces/{tenant}", 200, inLaterMode),
  "get namespace in a mode of a later version": () =>
    answering("get namespace with its members", 200, inLaterMode),
  "a subject of a later version": () => laterPolicies({ subject: { type: "group", value: "crew" } }),
  "an action of a later version": () => laterPolicies({ action: "audit" }),
  "access policies are not shown": () =>
    answering("identity user: GET /api/access-policies", 403, () => ({ message: "forbidden" })),
  "API keys are not shown": () =>
    answering("identity user: GET /api/namespaces/api-key", 403, () => ({ message: "forbidden" })),
  "members without addresses": () =>
    answering("legacy user: GET /api/namespaces/{tenant}/members", 200, (members) =>
      (members as object[]).map((member) => ({ ...member, email: "" })),
    ),
  "no API keys": () => answering("list API keys", 200, () => []),
  "no public keys": () => answering("identity key: GET /api/sshkeys/public-keys", 200, () => []),
  "no devices": () => answering("identity key: GET /api/devices", 200, () => []),
  "invitations are not shown": () => answering("list invitations", 404, () => ""),
  "members before anybody accepted": () => membersIn(exchangeOf("get namespace before anybody accepted")),
  "members of the namespace": () => membersIn(exchangeOf("get namespace with its members")),
};

const reversed = ({ response, ...exchange }: Exchange): Exchange => ({
  ...exchange,
  response: { ...response, body: (response.body as unknown[]).toReversed() },
});

/** The fields of a session of the recorded release that do not depend on the login. */
const SESSION = {
  last_seen: "2026-11-28T10:50:00.35417Z",
  active: false,
  authenticated: true,
  recorded: false,
  type: "none",
  term: "none",
  web: false,
  position: { longitude: 0, latitude: 0 },
  events: { types: ["exec", "exit-status"], seats: [0] },
};

/**
 * Returns a list of sessions on the device web1 of the namespace in identity mode, one a minute, latest first. A session
 * of a user contains the id of the user, like the recorded sessions in identity mode.
 * @param logins the login names by the name of the user; `other` for a session without a user
 */
function sessionsOf(logins: Readonly<Record<string, string>>): Exchange {
  const { body: members } = exchangeOf("identity user: GET /api/namespaces/{tenant}/members").response;
  const { body: devices } = exchangeOf("identity user: GET /api/devices").response;
  const device = (devices as { uid: string; name: string; tenant_id: string }[]).find(
    ({ name }) => name === "web1",
  );
  return answering("identity user: GET /api/sessions", 200, () =>
    Object.entries(logins).map(([name, login], index) => {
      const user = (members as { id: string; username: string }[]).find(({ username }) => username === name);
      return {
        ...SESSION,
        uid: String(index).repeat(64),
        device_uid: device?.uid,
        device,
        tenant_id: device?.tenant_id,
        username: login,
        ...(user && { user_id: user.id }),
        ip_address: "127.0.0.1",
        started_at: `2026-11-28T10:${String(50 - index)}:29.273737Z`,
      };
    }),
  );
}

function inLaterMode(namespace: unknown): object {
  const { settings, ...rest } = namespace as { settings: object };
  return { ...rest, settings: { ...settings, ssh_access_mode: "later" } };
}

interface RecordedMember {
  readonly id: string;
  readonly email: string;
  readonly role: string;
  readonly type: string;
  readonly added_at: string;
}

/** Returns the list of the members that an answer with a namespace contains. The list has no service accounts. */
function membersIn({ label, request, response }: Exchange): Exchange {
  const { members = [] } = response.body as { readonly members?: readonly RecordedMember[] };
  const body = members
    .filter(({ type }) => type !== "service")
    .map(({ type: _type, ...member }) => ({
      ...member,
      name: member.email,
      username: member.email,
      status: "active",
    }));
  const headers = { "content-type": "application/json" };
  return {
    label: `members: ${label}`,
    request: { method: "GET", path: `${pathOf(request.path)}/members` },
    response: response.status === 200 ? { status: 200, headers, body } : response,
  };
}

/** Returns the list of access policies, with a change of the last one. */
function laterPolicies(change: object): Exchange {
  return answering("identity user: GET /api/access-policies", 200, (policies) => {
    const [last, ...others] = (policies as object[]).toReversed();
    return [...others, { ...last, ...change }];
  });
}

function answering(label: string, status: number, change: (body: unknown) => unknown): Exchange {
  const { response, ...exchange } = exchangeOf(label);
  const body = change(response.body);
  const headers = {
    "content-type": "application/json",
    // The service sends the length of each list.
    ...(Array.isArray(body) && { "x-total-count": String(body.length) }),
  };
  return { ...exchange, response: { status, headers, body } };
}

/** Returns the exchange of a label in test/fixtures, or one of {@link derived}. */
function exchangeOf(label: string): Exchange {
  const derivedExchange = derived[label]?.();
  if (derivedExchange) return derivedExchange;
  const recorded = exchanges.find((exchange) => exchange.label === label);
  if (!recorded) throw new Error(`no exchange "${label}" is recorded`);
  return recorded;
}

const pathOf = (path = "/") => path.split("?")[0];

/**
 * Starts a service that answers by method and path with the exchanges of these labels. Several exchanges of one request
 * are used once each, in order; the last one repeats. If the members of a namespace were not recorded separately, the
 * answer has the members of the recorded namespace. Other requests answer 501.
 */
export async function startRecordedService(labels: readonly string[]): Promise<RecordedService> {
  const remaining = labels.map(exchangeOf);
  const requests: string[] = [];
  const server = createServer((incoming, outgoing) => {
    const requested = `${incoming.method} ${pathOf(incoming.url)}`;
    requests.push(requested);
    const matching = remaining.filter(
      ({ request }) => `${request.method} ${pathOf(request.path)}` === requested,
    );
    const isMembers =
      incoming.method === "GET" && /^\/api\/namespaces\/[^/]+\/members$/.test(requested.slice(4));
    const namespace = remaining.find(({ request }) => `GET ${pathOf(request.path)}/members` === requested);
    const [exchange = isMembers && namespace ? membersIn(namespace) : undefined] = matching;
    if (matching.length > 1) remaining.splice(remaining.indexOf(exchange as Exchange), 1);
    const { status, headers, body } = exchange?.response ?? { status: 501, headers: {}, body: "" };
    outgoing.writeHead(status, headers).end(body === "" ? "" : JSON.stringify(body));
  });
  return { ...(await listening(server)), requests };
}
