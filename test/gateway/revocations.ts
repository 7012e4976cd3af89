import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { Client } from "@gatehouse-access/sdk";
import ssh2 from "ssh2";
import { WebSocket } from "ws";
import type { TestService } from "../support/service.ts";
import { newKey, publicHalf, spawnSsh } from "../support/sshFleet.ts";

/** A way to take access away from an open login. */
export const REVOCATIONS = ["key", "rule", "member", "tag", "device"] as const;
export type Revocation = (typeof REVOCATIONS)[number];

/** Where logins are held, and where access to them is revoked. */
export interface RevocationLab {
  /** The API by which access is revoked, as the namespace's owner. */
  readonly client: Client;
  /** The service through which logins go. */
  readonly service: TestService;
  readonly sshPort: number;
  readonly tenant: string;
  readonly namespace: string;
  /** An accepted device that is online. */
  readonly device: { readonly uid: string; readonly hostname: string };
  /** A folder for keys. */
  readonly folder: string;
}

/** A login that goes on until something ends it. */
interface Held {
  readonly ended: Promise<unknown>;
  /** What its client has shown. */
  shown(): string;
}

/**
 * Opens a login, revokes its access in one way, and waits until the login has ended.
 * @returns the milliseconds from the answer to the change until the end, and what the client has shown
 */
export async function revoke(lab: RevocationLab, how: Revocation): Promise<{ ms: number; shown: string }> {
  const { client, device, tenant } = lab;
  const key = newKey(lab.folder, `revoked-by-${how}`);
  const filter = how === "tag" ? { tags: ["reachable"] } : { hostname: ".*" };
  if (how === "tag")
    await client.updateDeviceTags({ params: { uid: device.uid }, body: { tags: ["reachable", "other"] } });
  const { fingerprint } = await client.createPublicKey({
    body: { name: how, data: publicHalf(key), username: ".*", filter },
  });
  let userId = "";
  let held: Held;
  if (how === "member") {
    const user = { username: "guest", password: "guest of the lab", email: "guest@example.org" };
    userId = (await lab.service.createUser(user)).id;
    await client.inviteMember({ params: { tenant }, body: { email: user.email, role: "observer" } });
    held = await holdTerminal(lab, key, fingerprint, user);
  } else held = await holdLogin(lab, key);
  switch (how) {
    case "key":
      await client.deletePublicKey({ params: { fingerprint } });
      break;
    case "rule":
      await client.createFirewallRule({
        body: {
          ...{ action: "deny", active: true, priority: 1, sourceIp: ".*", username: ".*" },
          filter: { hostname: device.hostname },
        },
      });
      break;
    case "member":
      await client.removeMember({ params: { tenant, uid: userId } });
      break;
    case "tag":
      await client.updateDeviceTags({ params: { uid: device.uid }, body: { tags: ["other"] } });
      break;
    case "device":
      await client.deleteDevice({ params: { uid: device.uid } });
      break;
  }
  const changed = performance.now();
  await held.ended;
  const ms = performance.now() - changed;
  if (how === "rule") {
    const [rule] = await client.getFirewallRules({});
    await client.deleteFirewallRule({ params: { id: rule?.id ?? "" } });
  }
  return { ms, shown: held.shown() };
}

/** Holds a shared connection of OpenSSH with a command on it. */
async function holdLogin({ namespace, device, sshPort }: RevocationLab, key: string): Promise<Held> {
  const to = `root@${namespace}.${device.hostname}`;
  const child = spawnSsh({ to, port: sshPort, key, command: "echo begun; exec cat" });
  const ended = once(child, "exit");
  let shown = "";
  child.stderr.on("data", (data) => {
    shown += String(data);
  });
  await Promise.race([once(child.stdout, "data"), ended]);
  return { ended, shown: () => shown };
}

/** Holds a web terminal that a user opens with a key. */
async function holdTerminal(
  { service, device }: RevocationLab,
  key: string,
  fingerprint: string,
  user: { readonly username: string; readonly password: string },
): Promise<Held> {
  const parsed = ssh2.utils.parseKey(readFileSync(key));
  if (parsed instanceof Error) throw parsed;
  const signature = (parsed.sign("root") as Buffer).toString("base64");
  const post = async (path: string, body: object, headers: object = {}) => {
    const answer = await fetch(service.url + path, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
    return ((await answer.json()) as { readonly token: string }).token;
  };
  const login = await post("/api/login", user);
  // The token says who opens the terminal. It needs none, so that the SDK sends none.
  const asked = { device: device.uid, username: "root", fingerprint, signature };
  const token = await post("/ws/ssh", asked, { authorization: `Bearer ${login}` });
  const socket = new WebSocket(`${service.url.replace("http", "ws")}/ws/ssh?token=${token}&cols=80&rows=24`, {
    headers: { Origin: service.url },
  });
  const ended = once(socket, "close");
  let shown = "";
  socket.on("message", (data) => {
    shown += String(data);
  });
  await once(socket, "message");
  return { ended, shown: () => shown };
}
