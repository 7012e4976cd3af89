import { generateKeyPairSync, randomBytes } from "node:crypto";
import { expect } from "vitest";
import { type CallOptions, enroll, type TestApp } from "../testApp.ts";
import { type MatrixFixture, newMac, type PreparedNamespace } from "./fixture.ts";
import type { Id } from "./requests.ts";

/** Identifiers of one object of each kind in a namespace, in the form that paths use. */
export interface NamespaceObjects {
  readonly device: string;
  readonly container: string;
  readonly tag: string;
  readonly fingerprint: string;
  readonly rule: string;
  readonly key: string;
  readonly workload: string;
  readonly member: string;
  readonly session: string;
  readonly tunnel: string;
  readonly connector: string;
}

const WEB = { id: "alpine", pretty_name: "Alpine", version: "v0.19.0", arch: "amd64", platform: "connector" };

/** Creates a public key in the wire format: base64 of its authorized_keys line. */
function newPublicKey(): string {
  const { x = "" } = generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" });
  const field = (bytes: Buffer) => Buffer.concat([Buffer.from([0, 0, 0, bytes.length]), bytes]);
  const blob = Buffer.concat([field(Buffer.from("ssh-ed25519")), field(Buffer.from(x, "base64url"))]);
  return Buffer.from(`ssh-ed25519 ${blob.toString("base64")}\n`).toString("base64");
}

/** Creates one object of each kind in a namespace. */
export async function createObjects(
  { app }: MatrixFixture,
  place: PreparedNamespace,
  name: string,
): Promise<NamespaceObjects> {
  const { token } = place.owner;
  const create = async (id: Id, options: CallOptions) => {
    const answer = await app.call(id, { token, ...options });
    expect(answer.status, `${id} ${answer.text}`).toBe(200);
    return answer.body;
  };
  const { uid: device } = await enroll(app, place.tenant, newMac());
  await create("acceptDevice", { params: { uid: device } });
  const { uid: container } = await enroll(app, place.tenant, newMac(), { info: WEB });
  await create("createDeviceTag", { params: { uid: device }, body: { tag: name } });
  await create("createContainerTag", { params: { uid: container }, body: { tag: name } });
  const filter = { tags: [name] };
  const publicKey = { name, username: "root", filter, data: newPublicKey() };
  const { fingerprint } = await create("createPublicKey", { body: publicKey });
  const rule = { action: "deny", active: true, priority: 1, source_ip: ".*", username: ".*", filter };
  const { id } = await create("createFirewallRule", { body: rule });
  await create("createApiKey", { body: { name, expires_at: 30, role: "observer" } });
  const forward = { host: "127.0.0.1", port: 8080, ttl: -1 };
  const { address: tunnel } = await create("createTunnel", { params: { uid: device }, body: forward });
  await create("connectorCreate", { body: { address: `${name}.example.org`, port: 2375 } });
  const [{ uid: connector }] = await create("connectorList", {});
  const member = place.members.get("observer")?.id ?? "";
  const session = await makeSession(app, place.tenant, device);
  return {
    device,
    container,
    tag: name,
    fingerprint,
    rule: id,
    key: name,
    workload: place.workloads.get("observer")?.id ?? "",
    member,
    session,
    tunnel,
    connector,
  };
}

/**
 * Creates a session with a recording directly in the database, because the service creates sessions only for SSH
 * logins.
 */
async function makeSession(app: TestApp, tenantId: string, deviceUid: string): Promise<string> {
  const uid = randomBytes(32).toString("hex");
  const at = app.services.now();
  const login = { username: "root", ipAddress: "198.51.100.4", type: "term", term: "xterm" };
  await app.services.db.session.create({
    data: { uid, tenantId, deviceUid, ...login, startedAt: at, lastSeen: at, recorded: true, records: 1 },
  });
  const record = { time: at, message: '"$ "', width: 80n, height: 24n };
  await app.services.db.sessionRecord.create({ data: { sessionUid: uid, seat: 0, sequence: 1, ...record } });
  return uid;
}

/** Returns the body of an operation's request, with the identifiers that the body must contain. */
export function bodyFor(id: Id, body: unknown, { device, session }: NamespaceObjects): unknown {
  if (id === "closeSession") return { device };
  return id === "recordSession" ? { ...(body as object), uid: session } : body;
}

/** Returns the path parameters of an operation, with the identifiers of the objects. */
export function paramsFor(
  id: Id,
  names: readonly string[],
  objects: NamespaceObjects,
): Record<string, string> {
  const { device, container, tag, fingerprint, rule, key, member, session, tunnel, connector, workload } =
    objects;
  const kinds = { Member: member, Container: container, Session: session, connector };
  const uid = Object.entries(kinds).find(([kind]) => id.includes(kind))?.[1] ?? device;
  const all: Record<string, string> = {
    uid,
    tag,
    fingerprint,
    id: id.includes("Workload") ? workload : rule,
    key,
    kind: "firewallRule",
    status: "reject",
    seat: "0",
    address: tunnel,
  };
  const named = names.filter((name) => name !== "tenant");
  return Object.fromEntries(
    named.map((name) => {
      const value = all[name];
      if (value === undefined) throw new Error(`${id}: add the parameter {${name}} to paramsFor`);
      return [name, value];
    }),
  );
}
