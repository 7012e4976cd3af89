import { randomBytes, randomUUID } from "node:crypto";
import { type Case, send } from "./case.ts";
import type { BenchRequest } from "./load.ts";
import {
  contentsOf,
  GIVEN_ROLES,
  keyLine,
  keyOf,
  type NamespaceName,
  RARE_TAG,
  ruleIdOf,
  TEAMS,
  tenantOf,
  uidOf,
  userOf,
} from "./namespaces.ts";

const KEYS = "/api/sshkeys/public-keys";
const RULES = "/api/firewall/rules";

const ANY_DEVICE = { hostname: ".*" };

/** A case each of whose requests changes something in a namespace. */
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

/** A rule whose priority is the number of the request, so that each request changes it. */
const rule = (index: number) => ({
  action: "deny",
  active: true,
  priority: index,
  source_ip: ".*",
  username: ".*",
  filter: ANY_DEVICE,
});

/**
 * The value for a request that changes one of so many objects in turn. Of three values the next one changes the object
 * even if the request before was given up with its run, whether it reached the service or not.
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

/** Cases that change what people declare, by their names on the command line. */
export const writes = {
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
  "device-tags": write("tags of a device replaced", "devices-tagged", (index) =>
    send("PUT", `/api/devices/${uidOf("devices-tagged", index % TAGGED)}/tags`, {
      tags: inTurn(TAGS, TAGGED, index),
    }),
  ),
  "device-accept": write("device accept", "devices-accepted", (index) => ({
    method: "PATCH",
    path: `/api/devices/${uidOf("devices-accepted", index)}/accept`,
  })),
  "member-add": {
    title: "member added",
    // The answer has all members of the namespace, which would become more and more in a single one.
    namespaces: TEAMS,
    changes: true,
    request: (index) =>
      send("POST", membersOf(TEAMS[index % TEAMS.length] as NamespaceName), {
        email: userOf(Math.floor(index / TEAMS.length)).email,
        role: "operator",
      }),
  },
  "member-role": write("member's role changed", "members-changed", (index) =>
    send("PATCH", `${membersOf("members-changed")}/${userOf(index % MEMBERS).id}`, {
      role: inTurn(GIVEN_ROLES, MEMBERS, index),
    }),
  ),
  "api-key": write("API key made", "api-keys", (index) =>
    send("POST", "/api/namespaces/api-key", { name: `key-${index}`, expires_at: 30, role: "observer" }),
  ),
} as const satisfies Readonly<Record<string, Case>>;
