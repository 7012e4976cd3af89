import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { Client } from "@gatehouse-access/sdk";
import ssh2 from "ssh2";
import { WebSocket } from "ws";
import type { TestService } from "../support/service.ts";
import { newKey, publicHalf, spawnSsh } from "../support/sshFleet.ts";

/**
 * Objects whose change or deletion revokes the access of an open login, and ends of objects: of the key, and of the
 * membership of the key's owner.
 */
export const REVOCATIONS = ["key", "rule", "member", "tag", "key's end", "owner's end", "device"] as const;
/** Time from the request that sets an end to this end, in milliseconds. */
const UNTIL_END = 2000;
export type Revocation = (typeof REVOCATIONS)[number];

/** The service and the device of open logins, and the client with which tests revoke access. */
export interface RevocationTarget {
  /** An API client that authenticates as the namespace's owner. */
  readonly client: Client;
  /** The service that logins go through. */
  readonly service: TestService;
  readonly sshPort: number;
  readonly tenant: string;
  readonly namespace: string;
  /** An accepted device that is online. */
  readonly device: { readonly uid: string; readonly hostname: string };
  /** A folder for the private keys of logins. */
  readonly folder: string;
}

/** A login that stays open until the service ends it. */
interface OpenLogin {
  readonly ended: Promise<unknown>;
  /** Returns the client's output so far. */
  shown(): string;
}

/**
 * Opens a login, revokes its access in the given way, and waits until the login has ended.
 * @returns the time from the revocation until the end of the login, in milliseconds, and the client's output
 */
export async function revoke(
  target: RevocationTarget,
  how: Revocation,
): Promise<{ ms: number; shown: string }> {
  const { client, device, tenant } = target;
  const key = newKey(target.folder, `revoked-by-${how.replace(/\W/g, "-")}`);
  const filter = how === "tag" ? { tags: ["reachable"] } : { hostname: ".*" };
  if (how === "tag")
    await client.updateDeviceTags({ params: { uid: device.uid }, body: { tags: ["reachable", "other"] } });
  let userId = "";
  const name = how === "member" ? "guest" : "owner";
  const user = { username: name, password: "guest of the lab", email: `${name}@example.org` };
  if (how === "member" || how === "owner's end") {
    userId = (await target.service.createUser(user)).id;
    await client.inviteMember({ params: { tenant }, body: { email: user.email, role: "observer" } });
  }
  const settings = { name: how, username: ".*", filter };
  const { fingerprint } = await client.createPublicKey({
    body: { ...settings, data: publicHalf(key), ...(how === "owner's end" && { owner: userId }) },
  });
  const openLogin: OpenLogin =
    how === "member" ? await openTerminal(target, key, fingerprint, user) : await openSshLogin(target, key);
  const end = Date.now() + UNTIL_END;
  const expiresAt = new Date(end).toISOString();
  switch (how) {
    case "key":
      await client.deletePublicKey({ params: { fingerprint } });
      break;
    case "rule":
      await client.createFirewallRule({
        body: {
          action: "deny",
          active: true,
          priority: 1,
          sourceIp: ".*",
          username: ".*",
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
    case "key's end":
      await client.updatePublicKey({ params: { fingerprint }, body: { ...settings, expiresAt } });
      break;
    case "owner's end":
      await client.updateMember({
        params: { tenant, uid: userId },
        body: { accessExpiresAt: expiresAt },
      });
      break;
    case "device":
      await client.deleteDevice({ params: { uid: device.uid } });
      break;
  }
  const revoked = how.endsWith(" end") ? end : Date.now();
  await openLogin.ended;
  const ms = Date.now() - revoked;
  if (how === "rule") {
    const [rule] = await client.getFirewallRules({});
    await client.deleteFirewallRule({ params: { id: rule?.id ?? "" } });
  }
  return { ms, shown: openLogin.shown() };
}

/** Opens a login over a shared OpenSSH connection, and runs a command. */
async function openSshLogin(
  { namespace, device, sshPort }: RevocationTarget,
  key: string,
): Promise<OpenLogin> {
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

/** Opens a web terminal as a user who logs in to the device with a key. */
async function openTerminal(
  { service, device }: RevocationTarget,
  key: string,
  fingerprint: string,
  user: { readonly username: string; readonly password: string },
): Promise<OpenLogin> {
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
  // The request carries the user's token. The SDK cannot send it, because the contract declares this operation as
  // public.
  const request = { device: device.uid, username: "root", fingerprint, signature };
  const token = await post("/ws/ssh", request, { authorization: `Bearer ${login}` });
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
