import { device } from "../db/rows.ts";
import type { TestApp, TestUser } from "../http/testApp.ts";

/** Returns the uid of the n-th device that `fill` creates. */
export const uidOf = (tenantId: string, n: number) => `${tenantId.slice(0, 8)}${String(n).padStart(56, "0")}`;

/**
 * Adds the given number of rows of each kind to a user's namespace. Also creates this number of other namespaces that
 * the user owns.
 */
export async function fill({ services }: TestApp, user: TestUser, count: number): Promise<void> {
  const { id, tenant: tenantId } = user;
  const { db } = services;
  const now = services.now();
  const numbers = Array.from({ length: count }, (_, n) => n);
  const at = (n: number) => new Date(now.getTime() - n * 1000);
  const tagIdOf = (name: string) => `${tenantId} ${name}`;
  const tagged = (n: number) => ({ tenantId, tagId: tagIdOf(n % 10 === 0 ? "edge" : "core"), position: 0 });
  const uid = (n: number) => uidOf(tenantId, n);
  const fingerprint = (n: number) => n.toString(16).padStart(32, "0").match(/../g)?.join(":") ?? "";
  await db.device.createMany({
    data: numbers.map((n) =>
      device(tenantId, uid(n), now, {
        name: `host-${n}`,
        mac: `mac-${n}`,
        publicKey: "k".repeat(400),
        lastSeen: at(n),
        infoPlatform: n % 10 === 0 ? "connector" : "native",
        status: n % 3 === 0 ? "accepted" : "pending",
      }),
    ),
  });
  await db.tag.createMany({
    data: ["edge", "core"].map((name) => ({ id: tagIdOf(name), tenantId, name })),
  });
  await db.deviceTagUse.createMany({ data: numbers.map((n) => ({ ...tagged(n), deviceUid: uid(n) })) });
  await db.tunnel.createMany({
    data: numbers.map((n) => ({
      tenantId,
      deviceUid: uid(n % 2),
      address: uid(n).slice(0, 8) + uid(n).slice(-24),
      host: "::1",
      port: 80,
      ttl: 60,
      createdAt: at(n),
      expiresAt: at(-60 * n),
    })),
  });
  await db.connector.createMany({
    data: numbers.map((n) => ({
      tenantId,
      uid: crypto.randomUUID(),
      enable: n % 2 === 0,
      secure: false,
      address: "engine",
      port: 2375,
      createdAt: at(n),
    })),
  });
  await db.announcement.createMany({
    data: numbers.map((n) => ({ uuid: crypto.randomUUID(), title: "News", content: "Text", date: at(n) })),
  });
  await db.publicKey.createMany({
    data: numbers.map((n) => ({
      tenantId,
      fingerprint: fingerprint(n),
      name: `key-${n}`,
      data: "AAAA",
      username: ".*",
      hostname: null,
      createdAt: at(n),
    })),
  });
  await db.publicKeyTagUse.createMany({
    data: numbers.map((n) => ({ ...tagged(n), fingerprint: fingerprint(n) })),
  });
  await db.firewallRule.createMany({
    data: numbers.map((n) => ({
      tenantId,
      action: "deny",
      active: true,
      priority: n,
      sourceIp: ".*",
      username: ".*",
      hostname: ".*",
    })),
  });
  await db.apiKey.createMany({
    data: numbers.map((n) => ({
      tenantId,
      digest: `${tenantId}${n}`,
      name: `key-${n}`,
      role: "observer",
      createdBy: id,
      expiresIn: BigInt(n),
      createdAt: now,
      updatedAt: now,
    })),
  });
  await db.namespace.createMany({
    data: numbers.map((n) => ({
      tenantId: crypto.randomUUID(),
      name: `${tenantId.slice(0, 8)}-${n}`,
      ownerId: id,
      createdAt: at(n),
    })),
  });
  await db.auditEntry.createMany({
    data: numbers.map((n) => ({
      tenantId,
      at: at(n),
      requestId: "",
      address: "",
      actorKind: "user",
      actorId: id,
      actorName: "",
      operation: "renameDevice",
      objectKind: "device",
      objectId: uid(n),
    })),
  });
  await db.session.createMany({
    data: numbers.map((n) => ({
      uid: uid(n),
      tenantId,
      deviceUid: uid(0),
      username: "root",
      ipAddress: "",
      type: "term",
      term: "",
      startedAt: at(n),
      lastSeen: at(n),
      recorded: n % 2 === 0,
    })),
  });
  await db.sessionEvent.createMany({
    data: numbers.map((n) => ({
      sessionUid: uid(n),
      sequence: 1,
      seat: 0,
      type: "shell",
      at: at(n),
      data: "{}",
    })),
  });
  const spaces = await db.namespace.findMany({ where: { ownerId: id, tenantId: { not: tenantId } } });
  await db.member.createMany({
    data: spaces.map((space) => ({ tenantId: space.tenantId, userId: id, role: "owner", addedAt: now })),
  });
}
