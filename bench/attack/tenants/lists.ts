// Attacks by lists of keys, rules, namespaces and audit entries with the largest content.
import { createHash } from "node:crypto";
import { userOf } from "../../server/namespaces.ts";
import { longPattern } from "./costlyPatterns.ts";
import { firstRuleOf, reading, type TenantCase } from "./tenantCase.ts";

const OBJECTS = 10_000;
const LAST_PAGE = OBJECTS / 100;
/** Length of a stored RSA key of 16,384 bits, in characters. */
const KEY_LENGTH = 3720;
const NAMESPACES = 100;
/** Number of members of each namespace: all users of the seeded service. */
const MEMBERS = 1000;
const AUDIT_ENTRIES = 1000;
const ANNOUNCEMENT = "a".repeat(4096);
/** Forwarding rules that almost fill the largest body of a request. */
const FORWARDING = JSON.stringify(
  Array.from({ length: 28 }, (_, index) => ({ login: longPattern(index), target: longPattern(index) })),
);

const fingerprintOf = (index: number): string =>
  createHash("md5").update(String(index)).digest("hex").match(/../g)?.join(":") ?? "";

const tenantOf = (tenantId: string, index: number): string =>
  `${tenantId.slice(0, 19)}a${tenantId.slice(20, -3)}${String(index).padStart(3, "0")}`;

export const LIST_CASES = {
  keyPages: reading(
    "pages of 100 of 10,000 public keys with the longest keys and patterns",
    [1, LAST_PAGE / 2, LAST_PAGE].map((page) => `/api/sshkeys/public-keys?per_page=100&page=${page}`),
    {
      parallel: 16,
      seed: ({ insert, tenantId, now }) =>
        insert(
          "PublicKey",
          OBJECTS,
          (index) => ({
            tenantId,
            fingerprint: fingerprintOf(index),
            name: String(index).padStart(255, "n"),
            data: "A".repeat(KEY_LENGTH),
            username: longPattern(index),
            hostname: longPattern(index),
            createdAt: now,
          }),
          500,
        ),
    },
  ),
  rulePages: reading(
    "pages of 100 of 10,000 firewall rules with the longest patterns",
    [1, LAST_PAGE / 2, LAST_PAGE].map((page) => `/api/firewall/rules?per_page=100&page=${page}`),
    {
      parallel: 16,
      seed: ({ insert, tenantId }) =>
        insert(
          "FirewallRule",
          OBJECTS,
          (index) => ({
            id: firstRuleOf(tenantId) + index,
            tenantId,
            action: "deny",
            active: true,
            priority: index,
            sourceIp: longPattern(index),
            username: longPattern(index),
            hostname: longPattern(index),
          }),
          500,
        ),
    },
  ),
  namespaceMembers: reading(
    "pages of 100 namespaces with 1,000 members each",
    ["/api/namespaces?per_page=100"],
    {
      async seed({ insert, tenantId, ownerId, now }) {
        for (let number = 0; number < NAMESPACES; number += 1) {
          const tenant = tenantOf(tenantId, number);
          const member = (userId: string, role: string) => ({ tenantId: tenant, userId, role, addedAt: now });
          await insert("Namespace", 1, () => ({
            tenantId: tenant,
            name: `crowd-${number}`,
            ownerId,
            createdAt: now,
          }));
          await insert("Member", 1, () => member(ownerId, "owner"));
          await insert("Member", MEMBERS, (index) => member(userOf(index).id, "observer"));
        }
      },
    },
  ),
  namespaceSettings: reading(
    "pages of 100 namespaces with the largest settings",
    ["/api/namespaces?per_page=100"],
    {
      async seed({ insert, tenantId, ownerId, now }) {
        const offset = 200;
        await insert("Namespace", NAMESPACES, (index) => ({
          tenantId: tenantOf(tenantId, offset + index),
          name: `settings-${index}`,
          ownerId,
          createdAt: now,
          connectionAnnouncement: ANNOUNCEMENT,
          sshForwarding: FORWARDING,
        }));
        await insert("Member", NAMESPACES, (index) => ({
          tenantId: tenantOf(tenantId, offset + index),
          userId: ownerId,
          role: "owner",
          addedAt: now,
        }));
      },
    },
  ),
  auditPages: reading(
    "pages of 100 audit entries with the largest settings before and after",
    ["/api/namespaces/{tenant}/audit?per_page=100"],
    {
      seed: ({ insert, tenantId, ownerId, now }) =>
        insert(
          "AuditEntry",
          AUDIT_ENTRIES,
          () => ({
            tenantId,
            at: now,
            requestId: "request",
            address: "127.0.0.1",
            actorKind: "user",
            actorId: ownerId,
            actorName: ownerId,
            operation: "editNamespace",
            objectKind: "namespace",
            objectId: tenantId,
            before: JSON.stringify({ settings: { ssh_forwarding: JSON.parse(FORWARDING) } }),
            after: JSON.stringify({ settings: { ssh_forwarding: JSON.parse(FORWARDING) } }),
          }),
          100,
        ),
    },
  ),
} as const satisfies Readonly<Record<string, TenantCase>>;
