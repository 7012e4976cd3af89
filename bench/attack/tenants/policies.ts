// Attacks by firewall rules, keys and forwarding rules, whose patterns the service evaluates.
import { randomInt } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import ssh2 from "ssh2";
import { WebSocket } from "ws";
import { newKey, openFolder, publicHalf, startAgent } from "../../../test/support/sshFleet.ts";
import { costlyMatch, costlyPattern } from "./costlyPatterns.ts";
import { addDevices, hostileUid } from "./deviceRows.ts";
import {
  type Attacker,
  call,
  firstRuleOf,
  MANY_ADDRESSES,
  type Place,
  type Seeding,
  type TenantCase,
} from "./tenantCase.ts";

/** Number of firewall rules, whose patterns all differ. */
const RULES = 1600;
/** Number of forwarding rules of a namespace; the maximum. */
const FORWARDING_RULES = 50;

/** Number of patterns that the attacker has created so far, since a cache must not help. */
let created = randomInt(10_000);
const nextPattern = (): string => {
  created += 1;
  return costlyPattern(created);
};

/** Adds a device, and rules of which only the last in order matches and denies a login. */
async function addRules(seeding: Seeding): Promise<void> {
  const { insert, tenantId } = seeding;
  await addDevices(seeding, { count: 1, nameOf: () => "device" });
  await insert("FirewallRule", RULES, (index) => {
    // The address and the login name match, so that the service also evaluates the pattern on the device.
    const matching = (which: number) => (index === 0 ? ".*" : costlyMatch(index * 2 + which));
    return {
      id: firstRuleOf(tenantId) + index,
      tenantId,
      action: "deny",
      active: true,
      priority: index + 1,
      sourceIp: matching(0),
      username: matching(1),
      hostname: index === 0 ? ".*" : costlyPattern(index),
    };
  });
}

const LOGIN = "a".repeat(64);

/** Sends passwords over one SSH connection until the gateway closes the connection. */
async function sendPasswords({ sshPort, namespace, count }: Attacker): Promise<void> {
  const client = new ssh2.Client();
  const ended = new Promise<void>((resolve) => client.on("close", () => resolve()));
  client.on("error", (error) => count(error.message.includes("authentication") ? "refused" : "closed"));
  const username = `${LOGIN}@${namespace}.device`;
  const attempt = { type: "password" as const, username, password: "wrong" };
  client.connect({
    host: "127.0.0.1",
    port: sshPort,
    username,
    authHandler: (_left, _partial, next) => next(attempt),
    readyTimeout: 600_000,
  });
  await ended;
}

/** Opens a web terminal with a wrong password. */
async function openTerminal(attacker: Attacker): Promise<void> {
  const { pool, url, count, tenantId } = attacker;
  const device = hostileUid(tenantId, 0);
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ device, username: LOGIN, password: "wrong" });
  const response = await pool.request({ method: "POST", path: "/ws/ssh", headers, body });
  const { token } = (await response.body.json()) as { readonly token: string };
  const socket = new WebSocket(`${url.replace("http", "ws")}/ws/ssh?token=${token}`);
  socket.on("error", () => count("error"));
  socket.on("message", () => count("refused"));
  await new Promise((resolve) => socket.on("close", resolve));
}

/** Returns forwarding rules that match nothing. */
const forwardingRules = (pattern: () => string) =>
  Array.from({ length: FORWARDING_RULES }, () => ({ login: pattern(), target: pattern() }));

/** Writes forwarding rules into the row of the namespace. */
async function storeForwardingRules(place: Place, rules: object): Promise<void> {
  const response = await fetch(`${place.url}/api/namespaces/${place.tenantId}`, {
    method: "PUT",
    headers: { "content-type": "application/json", authorization: `Bearer ${place.token}` },
    body: JSON.stringify({ settings: { ssh_forwarding: rules } }),
  });
  if (!response.ok) throw new Error(`the rules are refused: ${response.status} ${await response.text()}`);
}

interface Forwarding {
  readonly to: string;
  readonly key: string;
}

/** Starts the agent of a device that an SSH key opens. */
async function startDevice(place: Place): Promise<Forwarding> {
  const { url, tenantId, namespace, token, onEnd } = place;
  const folder = openFolder();
  onEnd(() => folder.remove());
  const agent = await startAgent({ url, tenant: tenantId, hostname: "edge", folder: folder.path });
  onEnd(() => agent.kill());
  const send = async (method: string, path: string, body?: object) => {
    const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
    const response = await fetch(`${url}${path}`, {
      method,
      headers: body === undefined ? { authorization: headers.authorization } : headers,
      body: body === undefined ? null : JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  };
  await send("PATCH", `/api/devices/${agent.uid}/accept`);
  const path = newKey(folder.path, "key");
  const everything = { username: ".*", filter: { hostname: ".*" } };
  await send("POST", "/api/sshkeys/public-keys", { name: "key", data: publicHalf(path), ...everything });
  const key = readFileSync(join(path), "utf8");
  return { to: `root@${namespace}.edge`, key };
}

/** Sends forwarding requests to targets that no rule allows, over one connection. */
async function requestForwarding({ sshPort, count }: Attacker, { to, key }: Forwarding): Promise<void> {
  const client = new ssh2.Client();
  let open = true;
  const ended = new Promise<void>((resolve) => client.on("close", () => resolve()));
  client.on("error", () => count("closed"));
  void ended.then(() => {
    open = false;
  });
  client.on("ready", () => {
    const target = "a".repeat(255);
    const again = () => {
      if (!open) return;
      client.forwardOut("127.0.0.1", 1, target, 80, (error) => {
        count(error === undefined ? "opened" : "refused");
        setImmediate(again);
      });
    };
    for (let index = 0; index < 20; index += 1) again();
  });
  client.connect({ host: "127.0.0.1", port: sshPort, username: to, privateKey: key });
  await ended;
}

export const POLICY_CASES = {
  firewallSsh: {
    title: "SSH logins by password: 1,600 firewall rules with 3 distinct patterns each",
    env: MANY_ADDRESSES,
    seed: addRules,
    run: sendPasswords,
  },
  firewallTerminal: {
    title: "web terminals: 1,600 firewall rules with 3 distinct patterns each",
    env: MANY_ADDRESSES,
    seed: addRules,
    run: openTerminal,
  },
  ruleWrites: {
    title: "new firewall rules with 3 distinct patterns each",
    env: { GATEHOUSE_MAXIMUM_FIREWALL_RULES: "0" },
    run: (attacker) =>
      call(attacker, "POST", "/api/firewall/rules", {
        action: "deny",
        active: false,
        priority: 1,
        source_ip: nextPattern(),
        username: nextPattern(),
        filter: { hostname: nextPattern() },
      }),
  },
  forwardingWrites: {
    title: "settings with 50 forwarding rules of 2 distinct patterns each",
    run: (attacker) =>
      call(attacker, "PUT", `/api/namespaces/${attacker.tenantId}`, {
        settings: { ssh_forwarding: forwardingRules(nextPattern) },
      }),
  },
  forwardingLogins: {
    title: "SSH logins by password: 50 forwarding rules with distinct patterns on the login name",
    env: MANY_ADDRESSES,
    async seed(seeding) {
      await addDevices(seeding, { count: 1, nameOf: () => "device" });
    },
    prepare: async (place) => storeForwardingRules(place, forwardingRules(nextPattern)),
    run: sendPasswords,
  },
  forwardingRequests: {
    title:
      "forwarding requests, 20 at a time on each of 4 connections: 50 forwarding rules with distinct patterns on the target",
    env: MANY_ADDRESSES,
    async prepare(place) {
      const target = (rule: { readonly target: string }) => ({ login: ".*", target: rule.target });
      await storeForwardingRules(place, forwardingRules(nextPattern).map(target));
      return startDevice(place);
    },
    run: requestForwarding,
  },
} as const satisfies Readonly<Record<string, TenantCase>>;
