import { randomBytes, randomUUID } from "node:crypto";
import {
  contentsOf,
  GIVEN_ROLES,
  keyLine,
  keyOf,
  type NamespaceName,
  PASSWORD,
  RARE_TAG,
  reportOf,
  ruleIdOf,
  TEAMS,
  tenantOf,
  USERNAMES,
  uidOf,
  userOf,
} from "./namespaces.ts";

export interface BenchRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** A measured case: requests of one kind that are sent repeatedly. */
export interface Case {
  readonly title: string;
  /**
   * The namespaces to which the requests are sent in turn, with a token of the owner. One user owns all these
   * namespaces. If omitted, the requests have no credential.
   */
  readonly namespaces?: readonly NamespaceName[];
  /** Returns the request with the number `index`. The numbers begin at 0 and never repeat on one database. */
  readonly request: (index: number) => BenchRequest;
  /** Number of warm-up requests, which make the service process each object once before the measurement. */
  readonly before?: number;
  /**
   * True if each request changes an object of its namespace. The benchmark then checks that the audit trail contains a
   * change for each request.
   */
  readonly changes?: true;
  /** A second case whose requests run at the same time on half of the connections. These requests change nothing. */
  readonly beside?: Case;
}

const get = (title: string, namespace: NamespaceName, path: string): Case => ({
  title,
  namespaces: [namespace],
  request: () => ({ method: "GET", path }),
});

/** Returns a request with a body. */
const send = (method: BenchRequest["method"], path: string, body: unknown): BenchRequest => ({
  method,
  path,
  body: JSON.stringify(body),
});

const KEYS = "/api/sshkeys/public-keys";
const RULES = "/api/firewall/rules";

const filter = (name: string, value: unknown): string => {
  const filters = [{ type: "property", params: { name, operator: "contains", value } }];
  return encodeURIComponent(Buffer.from(JSON.stringify(filters)).toString("base64"));
};

/**
 * Returns a case in which each device sends reports in turn. All devices have sent a report before the measurement, as
 * in a service that has run for a minute.
 */
const deviceAuth = (namespace: NamespaceName): Case => {
  const { devices = 0 } = contentsOf(namespace);
  return {
    title: `device authentication, ${devices.toLocaleString("en")} device${devices === 1 ? "" : "s"}`,
    request: (index) => send("POST", "/api/devices/auth", reportOf(namespace, index % devices)),
    before: devices,
  };
};

const deviceList = (title: string, query: string): Case =>
  get(`device list, 100,000 devices, ${title}`, "many", `/api/devices?per_page=100${query}`);

/** Cases whose requests do not change declared objects: lists, logins and device authentication. */
const reads = {
  namespaces: get("namespace list", "keys", "/api/namespaces"),
  "namespaces-large": get("namespace list, namespaces with 101,000 devices", "many", "/api/namespaces"),
  keys: get("100-key list", "keys", `${KEYS}?per_page=100`),
  login: {
    title: "login",
    request: () => send("POST", "/api/login", { username: USERNAMES[0], password: PASSWORD }),
  },
  "auth-1": deviceAuth("one"),
  "auth-1000": deviceAuth("thousand"),
  "auth-100000": deviceAuth("many"),
  "auth-restart": {
    ...deviceAuth("many"),
    title: "device authentication, first report of each device since the start",
    before: 0,
  },
  "devices-1000": get("device list, 100 of 1,000 devices", "thousand", "/api/devices?per_page=100"),
  "devices-tag": deviceList("filtered by tag", `&filter=${filter("tags", [RARE_TAG])}`),
  "devices-name": deviceList("filtered by part of the name", `&filter=${filter("name", "-4242")}`),
  "devices-page-1": deviceList("page 1", ""),
  "devices-page-1000": deviceList("page 1,000", "&page=1000"),
} as const satisfies Readonly<Record<string, Case>>;

const ANY_DEVICE = { hostname: ".*" };

/** Defines a case whose requests each change an object of a namespace. */
const write = (title: string, namespace: NamespaceName, request: Case["request"]): Case => ({
  title,
  namespaces: [namespace],
  changes: true,
  request,
});

const newKey = (index: number, filter: object): BenchRequest =>
  send("POST", KEYS, {
    data: Buffer.from(keyLine(randomBytes(32))).toString("base64"),
    name: `key-${index}`,
    username: ".*",
    filter,
  });

/** Returns a firewall rule whose priority is the number of the request, so that each request changes the rule. */
const rule = (index: number) => ({
  action: "deny",
  active: true,
  priority: index,
  source_ip: ".*",
  username: ".*",
  filter: ANY_DEVICE,
});

/**
 * Returns the value that request number `index` writes. The requests change the objects in turn, and each pass over all
 * objects writes the next of the three values. Three values are required because a run can end in the middle of a pass:
 * with two values, the next pass would write the value that the remaining objects already have.
 */
const inTurn = <T>(values: readonly [T, T, T], objects: number, index: number): T =>
  values[Math.floor(index / objects) % 3] as T;

const { devices: TAGGED = 0 } = contentsOf("devices-tagged");
const TAGS: readonly [string[], string[], string[]] = [
  ["edge", "prod"],
  ["prod", "web"],
  ["edge", "web"],
];

const { rules: RULES_UPDATED = 0 } = contentsOf("rules-updated");
const { members: MEMBERS = 0 } = contentsOf("members-changed");
const membersOf = (name: NamespaceName): string => `/api/namespaces/${tenantOf(name)}/members`;

/** Cases that change declared objects. */
const writes = {
  "key-create": write("key create", "created", (index) => newKey(index, ANY_DEVICE)),
  "key-create-once": write("key create with an Idempotency-Key", "created", (index) => ({
    ...newKey(index, ANY_DEVICE),
    headers: { "idempotency-key": randomUUID() },
  })),
  "key-create-tags": write("key create with a filter by tags", "keys-by-tags", (index) =>
    newKey(index, { tags: [RARE_TAG] }),
  ),
  "key-update": write("key update with If-Match", "keys-updated", (index) => {
    const { fingerprint, revision, name, filter } = keyOf(index);
    return {
      ...send("PUT", `${KEYS}/${fingerprint}`, { name, username: "^root$", filter }),
      headers: { "if-match": `"${revision}"` },
    };
  }),
  "key-delete": write("key delete", "keys-deleted", (index) => ({
    method: "DELETE",
    path: `${KEYS}/${keyOf(index).fingerprint}`,
  })),
  "rule-create": write("firewall rule create", "rules-created", (index) => send("POST", RULES, rule(index))),
  "rule-update": write("firewall rule update", "rules-updated", (index) =>
    send("PUT", `${RULES}/${ruleIdOf(index % RULES_UPDATED)}`, rule(index)),
  ),
  "device-tags": write("device tag replacement", "devices-tagged", (index) =>
    send("PUT", `/api/devices/${uidOf("devices-tagged", index % TAGGED)}/tags`, {
      tags: inTurn(TAGS, TAGGED, index),
    }),
  ),
  "device-accept": write("device accept", "devices-accepted", (index) => ({
    method: "PATCH",
    path: `/api/devices/${uidOf("devices-accepted", index)}/accept`,
  })),
  "member-add": {
    title: "member add",
    // The response contains all members of the namespace. The case uses several namespaces, since the responses of a
    // single namespace would grow with each request.
    namespaces: TEAMS,
    changes: true,
    request: (index) =>
      send("POST", membersOf(TEAMS[index % TEAMS.length] as NamespaceName), {
        email: userOf(Math.floor(index / TEAMS.length)).email,
        role: "operator",
      }),
  },
  "member-role": write("member role change", "members-changed", (index) =>
    send("PATCH", `${membersOf("members-changed")}/${userOf(index % MEMBERS).id}`, {
      role: inTurn(GIVEN_ROLES, MEMBERS, index),
    }),
  ),
  "api-key": write("API key create", "api-keys", (index) =>
    send("POST", "/api/namespaces/api-key", { name: `key-${index}`, expires_at: 30, role: "observer" }),
  ),
} as const satisfies Readonly<Record<string, Case>>;

/** All cases by their names on the command line. */
export const CASES: Readonly<Record<string, Case>> = {
  ...reads,
  ...writes,
  mixed: {
    ...writes["key-create"],
    title: "key create by 8 connections, beside the 100-key list",
    beside: { ...reads.keys, title: "100-key list by 8 connections, beside key create" },
  },
};
