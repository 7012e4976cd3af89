import fc from "fast-check";
import type {
  AccessPolicy,
  IdentityRules,
  NamespacePolicy,
  Principal,
  SshIdentity,
} from "../../sdk/policy/index.ts";
import { ADDRESSES, changed, deviceOf, filter, someOf } from "./arbitraries.ts";

/** Random access policies and principals that use few different names, so that many policies apply. */

const ROLES = ["owner", "administrator", "operator", "observer", "service"];
export const LOGINS = ["root", "ana", "Root", "deploy", "*", "roo*"];
export const CLIENTS = [...ADDRESSES, "10.1.2.3", "203.0.113.9", "::ffff:10.0.0.9"];

/** Entries of policies that the server cannot read. */
const UNREAD = ["10.0.0.0/33", "web", "2001:db8::/129"];
const NETWORKS = [
  "10.0.0.0/8",
  "10.1.0.0/16",
  "10.1.2.3/16",
  "10.0.0.1",
  "192.0.2.0/24",
  "0.0.0.0/0",
  "128.0.0.0/1",
  "::/0",
  "2001:db8::/32",
  "2001:db8::1",
  "2001:db8::7/64",
  "::/1",
  "::ffff:10.0.0.9",
  "::ffff:10.0.0.0/104",
  "0:0:0:0:0:FFFF:A00:0/104",
  "::ffff:10.0.0.0/8",
];

/** The time of the logins of a test, and times before and after it. */
export const NOW = new Date("2026-03-01T12:00:00Z");
const around = (seconds: number) => new Date(NOW.getTime() + seconds * 1000).toISOString();

const keyOf = (fingerprint: string): fc.Arbitrary<SshIdentity> =>
  fc.record({
    fingerprint: fc.constant(fingerprint),
    expiresAt: fc.constantFrom(null, null, null, ...[-1, 0, 60].map(around)),
    consumedAt: fc.constantFrom(null, null, null, null, around(-5)),
    lastReauthAt: fc.constantFrom(null, ...[-3600, -60, -59, -1, 0].map(around)),
  });

const principalOf = (id: string): fc.Arbitrary<Principal> =>
  fc.record({
    id: fc.constant(id),
    name: fc.constantFrom("ana@example.com", "bob@example.com", "ci"),
    kind: fc.constantFrom("user", "user", "service account"),
    role: fc.constantFrom(...ROLES),
    keys: fc.option(someOf(2, `SHA256:${id}-`, keyOf), { nil: undefined, freq: 5 }),
  });

const IDS = ["principal0", "principal1", "principal2", "principal3"];

/** A random access policy with an id. */
export const accessPolicy = (id: string): fc.Arbitrary<AccessPolicy> =>
  fc.record({
    id: fc.constant(id),
    name: fc.constantFrom("ops", "web", "all"),
    subject: fc.oneof(
      fc.record({ type: fc.constant("user" as const), value: fc.constantFrom(...IDS, "deleted", "") }),
      fc.record({ type: fc.constant("role" as const), value: fc.constantFrom(...ROLES, "Operator", "") }),
      fc.record({ type: fc.constant("all-members" as const), value: fc.constantFrom("", "ignored") }),
    ),
    filter: fc.oneof(
      { weight: 2, arbitrary: filter },
      { weight: 3, arbitrary: fc.constant({}) },
      { weight: 1, arbitrary: fc.constant({ hostname: "(" }) },
    ),
    logins: fc.oneof(fc.constant(["*"]), fc.subarray(LOGINS, { minLength: 1 })),
    sourceIps: fc.oneof(
      { weight: 3, arbitrary: fc.constant([]) },
      { weight: 3, arbitrary: fc.subarray(NETWORKS, { minLength: 1, maxLength: 3 }) },
      { weight: 1, arbitrary: fc.shuffledSubarray([...NETWORKS, ...UNREAD], { minLength: 1, maxLength: 3 }) },
    ),
    action: fc.constantFrom("allow", "allow", "allow", "allow", "deny"),
    requireReauth: fc.boolean(),
    reauthPeriod: fc.constantFrom(null, 60, 3600, 3600),
  });

const rules: fc.Arbitrary<IdentityRules> = fc.record({
  policies: fc.oneof(
    { weight: 15, arbitrary: someOf(6, "policy", accessPolicy) },
    { weight: 1, arbitrary: fc.constant([]) },
  ),
  principals: someOf(4, "principal", principalOf),
});

/** A random namespace in identity mode. Public keys and firewall rules have no effect in it. */
export const identityPolicy: fc.Arbitrary<NamespacePolicy & { readonly identity: IdentityRules }> = fc.record(
  {
    devices: someOf(5, "device", deviceOf),
    keys: fc.constant([]),
    rules: fc.constant([
      {
        id: "rule",
        action: "deny" as const,
        active: true,
        priority: 1,
        sourceIp: "",
        username: "",
        filter: {},
      },
    ]),
    identity: rules,
  },
);

/** A random namespace in identity mode, and a changed copy of it. */
export const changedIdentity = fc
  .tuple(identityPolicy, identityPolicy, fc.infiniteStream(fc.nat(5)))
  .map(([before, other, dice]) => ({
    before,
    after: {
      ...before,
      devices: changed(before.devices, other.devices, ({ uid }) => uid, dice),
      identity: {
        policies: changed(before.identity.policies, other.identity.policies, ({ id }) => id, dice),
        principals: changed(before.identity.principals, other.identity.principals, ({ id }) => id, dice),
      },
    },
  }));

/** Login names and addresses to evaluate. */
export const evaluatedIdentity = fc.record({
  logins: fc.subarray(LOGINS, { minLength: 1, maxLength: 2 }),
  addresses: fc.subarray(CLIENTS, { minLength: 1, maxLength: 3 }),
});

const octets = (count: number, text: (value: number) => string, joint: string) =>
  fc.array(fc.constantFrom(0, 1, 127, 128, 255), { minLength: count, maxLength: count }).map((all) => {
    const parts = all.map(text);
    return parts.join(joint);
  });
/** Addresses with few different parts, so that random networks often contain them. */
export const someAddress = fc.oneof(
  octets(4, String, "."),
  octets(3, (value) => value.toString(16), ":").map((groups) => `2001:${groups}::`),
  fc.constantFrom(...CLIENTS),
);
/** An entry of a policy: an address, or a network, possibly with host bits. */
export const someNetwork = fc.oneof(
  fc.constantFrom(...NETWORKS),
  someAddress,
  fc
    .tuple(someAddress, fc.nat(128))
    .map(([address, bits]) => `${address}/${address.includes(":") ? bits : bits % 33}`),
);
