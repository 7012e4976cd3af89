import { isIPv4 } from "node:net";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  accessPoliciesFor,
  type EnrolledKey,
  type LegacyKey,
  type LegacyNamespace,
  type PolicyInputs,
} from "../../provider/import/accessPolicies.ts";
import { parseSshPublicKey, sha256Fingerprint } from "../../sdk/contract/index.ts";
import type { AccessDevice } from "../../sdk/policy/index.ts";
import * as arbitrary from "../policy/arbitraries.ts";
import { decide } from "../policy/oracle.ts";

/** The line of an ed25519 key, by number. */
function keyLine(number: number): string {
  const part = (bytes: Buffer) => Buffer.concat([Buffer.from([0, 0, 0, bytes.length]), bytes]);
  const blob = Buffer.concat([part(Buffer.from("ssh-ed25519")), part(Buffer.alloc(32, number))]);
  return `ssh-ed25519 ${blob.toString("base64")}`;
}
const fingerprintOf = (data: string) => sha256Fingerprint(parseSshPublicKey(data));

/** A policy whose subject exists. */
type Applied = Omit<PolicyInputs, "subject"> & {
  readonly subject: Exclude<PolicyInputs["subject"], { account: unknown }>;
  readonly requireReauth: boolean;
};

/**
 * Decides a login in identity mode, by the rules of a 0.27 server: the key determines the principal, one matching deny
 * refuses, and one matching allow is needed.
 */
function allowedInIdentityMode(
  { principal, isServiceAccount }: EnrolledKey,
  accountRole: string,
  policies: readonly Applied[],
  device: AccessDevice,
  login: string,
  address: string,
): boolean {
  const matching = policies.filter(({ subject, filter, logins, sourceIps }) => {
    const isSubject =
      "allMembers" in subject
        ? !isServiceAccount
        : "role" in subject
          ? isServiceAccount && subject.role === (principal === ROBOT ? accountRole : "service")
          : subject.user === principal;
    const isDevice = filter.hostname
      ? new RegExp(filter.hostname).test(device.name)
      : !filter.tags?.length || filter.tags.some((tag) => device.tags.includes(tag));
    const isLogin = logins.includes(login) || (logins.length === 1 && logins[0] === "*");
    const isSource = sourceIps.length === 0 || sourceIps.some((range) => contains(range, address));
    return isSubject && isDevice && isLogin && isSource;
  });
  return matching.length > 0 && matching.every(({ action }) => action === "allow");
}

function contains(range: string, address: string): boolean {
  if (!isIPv4(address)) return false;
  const [network = "", length = "32"] = range.split("/");
  const bits = (text: string) =>
    text
      .split(".")
      .map((octet) => Number(octet).toString(2).padStart(8, "0"))
      .join("");
  return bits(network).slice(0, Number(length)) === bits(address).slice(0, Number(length));
}

/** The service account that exists before the conversion. */
const ROBOT = "robot";

/** Number of keys that some principals have besides the public keys of the namespace. */
const OTHERS = 3;

const enrolment = fc.option(
  fc.record({ principal: fc.constantFrom("ana", "ben", ROBOT), isLimited: fc.nat(9).map((n) => n === 0) }),
);
/** Rules with logins, addresses and devices that policies can express, besides those of any policy. */
const rule = fc.record({
  id: fc.uuid(),
  action: fc.constantFrom("allow" as const, "deny" as const),
  active: fc.nat(4).map((n) => n > 0),
  priority: fc.nat(3),
  sourceIp: fc.constantFrom("", ".*", "^10\\.0\\.0\\.1$", "^10\\.0\\.1\\.1$", "^1"),
  username: fc.constantFrom("", "^root$", "^(ana|root)$", "^ana$", "ro"),
  filter: fc.oneof(
    fc.constant({}),
    fc.constantFrom("^web-1$", "^db-1$", "web").map((hostname) => ({ hostname })),
    fc.constantFrom("prod", "lab").map((tag) => ({ tags: [tag] })),
  ),
});

interface Case {
  readonly namespace: LegacyNamespace;
  readonly devices: readonly AccessDevice[];
  /** The role of the existing service account. */
  readonly accountRole: string;
}

const cases: fc.Arbitrary<Case> = fc
  .record({
    policy: arbitrary.policy,
    rules: fc.option(fc.array(rule, { minLength: 1, maxLength: 4 })),
    /** Replaces the patterns of most keys by patterns that policies can express. */
    usernames: fc.array(fc.constantFrom(undefined, ".*", "^root$", "^(ana|root|deploy)$", "^ro$"), {
      minLength: 6,
      maxLength: 6,
    }),
    enrolments: fc.array(enrolment, { minLength: 12, maxLength: 12 }),
    accountRole: fc.constantFrom("service", "operator"),
    /** The policies of an earlier conversion that exist already. With a re-authentication, the conversion adds another. */
    existing: fc.array(fc.constantFrom("missing", "plain", "with a re-authentication"), {
      minLength: 6,
      maxLength: 6,
    }),
  })
  .map(({ policy, rules, usernames, enrolments, accountRole, existing }) => {
    const keys = policy.keys.map(
      (key, number): LegacyKey => ({
        ...key,
        name: `key-${number}`,
        data: keyLine(number),
        username: usernames[number] ?? key.username,
      }),
    );
    const lines = [
      ...keys.map(({ data }) => data),
      ...Array.from({ length: OTHERS }, (_, n) => keyLine(200 + n)),
    ];
    const taken = new Set<string>();
    const enrolled = lines.flatMap((line, number): EnrolledKey[] => {
      const found = enrolments[number];
      if (!found) return [];
      const { principal, isLimited } = found;
      const isServiceAccount = principal === ROBOT;
      // A service account has one key.
      if (isServiceAccount && taken.has(principal)) return [];
      taken.add(principal);
      return [
        {
          fingerprint: fingerprintOf(line),
          principal,
          principalName: principal,
          isServiceAccount,
          isLimited,
        },
      ];
    });
    const namespace = { keys, rules: rules ?? policy.rules, enrolled, policies: new Map() };
    const policies = accessPoliciesFor(namespace).policies.flatMap(({ subject, ...others }, number) => {
      const kind = existing[number] ?? "missing";
      if (kind === "missing" || "account" in subject) return [];
      return [[`old-${number}`, { ...others, subject, requireReauth: kind !== "plain" }] as const];
    });
    return { namespace: { ...namespace, policies: new Map(policies) }, devices: policy.devices, accountRole };
  });

/** Returns the namespace after the first policies of a conversion were created, with their service accounts. */
function applied(namespace: LegacyNamespace, policies: readonly PolicyInputs[]): LegacyNamespace {
  const enrolled = [...namespace.enrolled];
  const created = policies.map(({ subject, ...policy }): Applied => {
    if (!("account" in subject)) return { ...policy, subject, requireReauth: false };
    const { name, data } = subject.account;
    const principal = `account ${name}`;
    enrolled.push({
      fingerprint: fingerprintOf(data),
      principal,
      principalName: name,
      isServiceAccount: true,
      isLimited: false,
    });
    return { ...policy, subject: { user: principal }, requireReauth: false };
  });
  const existing = created.map((policy, number) => [`id-${number}`, policy] as const);
  return { ...namespace, enrolled, policies: new Map([...namespace.policies, ...existing]) };
}

test("no key gets more access, and each key that is not reported keeps its access", {
  tags: ["long"],
}, () => {
  const counts = { kept: 0, lost: 0, denied: 0, shared: 0 };
  fc.assert(
    fc.property(cases, arbitrary.evaluated, ({ namespace, devices, accountRole }, { logins, addresses }) => {
      const { policies, inexpressible } = accessPoliciesFor(namespace);
      const after = applied(namespace, policies);
      const inForce = [...after.policies.values()] as Applied[];
      const lost = new Set(inexpressible.flatMap(({ key }) => (key ? [fingerprintOf(key.data)] : [])));
      const legacy = {
        devices,
        rules: namespace.rules,
        keys: namespace.keys.map(({ data, ...key }) => ({ ...key, fingerprint: fingerprintOf(data) })),
      };
      const fingerprints = new Set([...legacy.keys, ...after.enrolled].map(({ fingerprint }) => fingerprint));
      // A server rejects an empty login name.
      for (const fingerprint of fingerprints)
        for (const device of devices)
          for (const login of logins.filter((text) => text !== ""))
            for (const address of addresses) {
              const before = decide(legacy, { fingerprint, login, address, uid: device.uid });
              const enrolled = after.enrolled.find((key) => key.fingerprint === fingerprint);
              const now =
                enrolled !== undefined &&
                allowedInIdentityMode(enrolled, accountRole, inForce, device, login, address);
              if (now) expect(before.allowed).toBe(true);
              // A limited key may stop to work at any time.
              if (!lost.has(fingerprint)) expect(now && !enrolled?.isLimited).toBe(before.allowed);
              counts.kept += Number(now);
              counts.lost += Number(before.allowed && !now);
              counts.denied += Number(before.admitted && !before.allowed && !lost.has(fingerprint));
              counts.shared += Number(now && enrolled?.isServiceAccount === false);
            }
    }),
    { numRuns: 400 },
  );
  for (const [name, count] of Object.entries(counts)) expect(count, name).toBeGreaterThan(20);
});

test("a conversion after a part of the policies was created adds the rest", { tags: ["long"] }, () => {
  let repeated = 0;
  let denied = 0;
  fc.assert(
    fc.property(cases, fc.nat(4), ({ namespace }, count) => {
      const first = accessPoliciesFor(namespace);
      const part = applied(namespace, first.policies.slice(0, count));
      const second = accessPoliciesFor(part);
      // The created service accounts exist now, so each rule also denies them by their ids.
      const accounts = part.enrolled.slice(namespace.enrolled.length).map(({ principal }) => principal);
      const isDenied = ({ action, subject }: PolicyInputs) =>
        action === "deny" && "user" in subject && accounts.includes(subject.user);
      expect(second.policies.filter((policy) => !isDenied(policy))).toEqual(first.policies.slice(count));
      const denials = second.policies.filter(isDenied);
      denied += denials.length;
      const rules = first.policies.filter(
        ({ action, subject }) => action === "deny" && "allMembers" in subject,
      );
      if (namespace.policies.size === 0) expect(denials).toHaveLength(rules.length * accounts.length);
      expect(second.inexpressible.map(({ text }) => text)).toEqual(
        first.inexpressible.map(({ text }) => text),
      );
      repeated += Number(second.policies.length > 0 && count > 0);
    }),
    { numRuns: 800 },
  );
  expect(repeated).toBeGreaterThan(20);
  expect(denied).toBeGreaterThan(20);
});

const KEY = { name: "ana", data: keyLine(1), username: "^root$", filter: { hostname: "^web-1$" } };
const namespaceOf = (change: Partial<LegacyNamespace>): LegacyNamespace => ({
  keys: [KEY],
  rules: [],
  enrolled: [],
  policies: new Map(),
  ...change,
});

test("an existing policy is reported unless the conversion needs it", () => {
  const policy = { ...KEY, subject: { allMembers: true }, logins: ["*"], sourceIps: [] } as const;
  const existing = { ...policy, name: "all", action: "allow", requireReauth: false } as const;
  const { policies, inexpressible } = accessPoliciesFor(
    namespaceOf({ policies: new Map([["7", existing]]) }),
  );
  expect(policies).toHaveLength(1);
  expect(inexpressible).toEqual([
    { text: "AccessPolicy all (7) exists already and takes effect in identity mode" },
  ]);
});

test("a name that means every login is not written as a name", () => {
  const { policies, inexpressible } = accessPoliciesFor(
    namespaceOf({ keys: [{ ...KEY, username: "^\\*$" }] }),
  );
  expect(policies).toEqual([]);
  expect(inexpressible.map(({ text }) => text)).toEqual([
    "PublicKey ana: access policies list login names, so ^\\*$ cannot be expressed; the key gets no access policy",
  ]);
});

test("a firewall rule with an exception is reported, and the logins that it may deny get no policy", () => {
  const deny = {
    id: "1",
    action: "deny",
    active: true,
    priority: 1,
    sourceIp: "",
    username: "^root$",
  } as const;
  const allow = { ...deny, id: "2", action: "allow", priority: 2, sourceIp: "^10\\.0\\.0\\.1$" } as const;
  const rules = [deny, allow].map((rule) => ({ ...rule, filter: {} }));
  const { policies, inexpressible } = accessPoliciesFor(
    namespaceOf({ rules, keys: [{ ...KEY, username: "^(deploy|root)$" }] }),
  );
  expect(policies.map(({ logins }) => logins)).toEqual([["deploy"]]);
  expect(inexpressible.map(({ text }) => text)).toEqual([
    "FirewallRule deny at priority 1 (1): an allow rule with priority 2 is an exception, and access policies have no priorities",
    "PublicKey ana: a firewall rule that cannot be expressed may deny the logins root",
  ]);
});
