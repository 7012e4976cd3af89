import { randomBytes } from "node:crypto";
import { sshKeyLine } from "../provider/support/programs.ts";
import { type Fleet, startFleet } from "../support/fleet.ts";

/** The token that the service's internal listener requires. */
const INTERNAL_TOKEN = "the-internal-token-of-the-tests-00";

/** A namespace with devices, keys and rules, and one session. */
export interface PolicyWorld {
  readonly fleet: Fleet;
  /** The uid of each device, by the device's name. */
  readonly uids: Readonly<Record<string, string>>;
  /** The fingerprint of each key, by the key's name. */
  readonly fingerprints: Readonly<Record<string, string>>;
}

const WEB = ["web-1", "web-2", "web-3", "web-4", "web-5"];

/** The tags of each device, by the device's name. `lab` is the name of one device and a tag of another device. */
const DEVICES: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(WEB.map((name) => [name, ["prod", "web"]])),
  "db-1": ["prod"],
  "db-2": ["prod"],
  gate: ["lab"],
  lab: [],
};

const KEYS = [
  { name: "ana", username: "^root$", filter: { tags: ["prod"] } },
  { name: "bob", username: "^(deploy|root)$", filter: { hostname: "^web-" } },
  { name: '=cmd(), "x"\u001b[2J', username: "^deploy$", filter: { hostname: "^(db-1|gate|lab)$" } },
];

const RULES = [
  {
    action: "deny",
    priority: 100,
    sourceIp: "^203\\.0\\.113\\.",
    username: ".*",
    filter: { tags: ["prod"] },
  },
  { action: "allow", priority: 50, sourceIp: ".*", username: "^deploy$", filter: { hostname: "^web-" } },
  { action: "deny", priority: 10, sourceIp: ".*", username: "^root$", filter: { hostname: "^db-2$" } },
  {
    action: "deny",
    priority: 90,
    sourceIp: ".*",
    username: "^root$",
    filter: { hostname: "^web-5$" },
    active: false,
  },
] as const;

/**
 * Starts a service with the namespace of these tests. The community edition of the service has no firewall.
 * @param more further settings of the service
 */
export async function startPolicyWorld(
  edition: "enterprise" | "community" = "enterprise",
  more: Readonly<Record<string, string>> = {},
): Promise<PolicyWorld> {
  const env = {
    ...more,
    GATEHOUSE_EDITION: edition,
    GATEHOUSE_INTERNAL_TOKEN: INTERNAL_TOKEN,
    GATEHOUSE_INTERNAL_PORT: "0",
  };
  const fleet = await startFleet([], { env });
  const { client } = fleet;
  const uids: Record<string, string> = {};
  const fingerprints: Record<string, string> = {};
  for (const [name, tags] of Object.entries(DEVICES)) {
    const uid = await fleet.enroll(name);
    if (tags.length > 0) await client.updateDeviceTags({ params: { uid }, body: { tags: [...tags] } });
    uids[name] = uid;
  }
  await fleet.enrollPending("waiting");
  for (const key of KEYS) {
    const data = Buffer.from(sshKeyLine()).toString("base64");
    const { fingerprint } = await client.createPublicKey({ body: { ...key, data } });
    fingerprints[key.name] = fingerprint;
  }
  if (edition === "enterprise")
    for (const rule of RULES) await client.createFirewallRule({ body: { active: true, ...rule } });
  await beginSession(fleet, uids["web-1"] ?? "");
  return { fleet, uids, fingerprints };
}

/** Starts a session of a login, in the same way as the SSH gateway of 0.19. Returns the uid of the session. */
export async function beginSession(
  fleet: Fleet,
  device: string,
  { login = "seen", address = "198.51.100.4" } = {},
): Promise<string> {
  const uid = randomBytes(32).toString("hex");
  await callInternal(fleet, "POST", "/internal/sessions", {
    uid,
    device_uid: device,
    username: login,
    ip_address: address,
  });
  return uid;
}

/** Starts a session of a login that succeeded. Returns the uid of the session. */
export async function admitLogin(
  fleet: Fleet,
  device: string,
  of: { readonly login: string; readonly address?: string },
): Promise<string> {
  const uid = await beginSession(fleet, device, of);
  await callInternal(fleet, "PATCH", `/internal/sessions/${uid}`, { authenticated: true });
  return uid;
}

async function callInternal({ service }: Fleet, method: string, path: string, body: object): Promise<void> {
  const listener = service.logs().find(({ msg }) => msg === "listening for internal operations");
  const response = await fetch(`${listener?.address}${path}`, {
    method,
    headers: { "content-type": "application/json", "x-internal-token": INTERNAL_TOKEN },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
}
