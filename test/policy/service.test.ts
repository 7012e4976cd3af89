import { createClient, tokenCredential } from "@gatehouse-access/sdk";
import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readNamespace } from "../../provider/namespace/readNamespace.ts";
import { Connection } from "../../provider/service/connection.ts";
import { type DeviceFilter, explain, type NamespacePolicy } from "../../sdk/policy/index.ts";
import { sshKeyLine } from "../provider/support/programs.ts";
import { startInternalApp, type TestInternalApp } from "../server/http/internalTestApp.ts";
import { enroll, startApp, type TestApp, type TestUser } from "../server/http/testApp.ts";
import { LOGINS, patternOn, TAGS } from "./arbitraries.ts";
import { compiles } from "./oracle.ts";

let app: TestApp;
let internal: TestInternalApp;
beforeEach(async () => {
  app = await startApp();
  app.stopClock();
  internal = await startInternalApp(app);
});
afterEach(async () => {
  await internal.stop();
  await app.stop();
});

const NAMES = ["web-1", "web-2", "db-1"];
/** Addresses that occur in the policy, each with an equivalent notation that clients and proxies use. */
const ADDRESSES: Record<string, string> = {
  "10.0.0.1": "::ffff:10.0.0.1",
  "110.0.0.1": "::FFFF:6E00:1",
  "192.0.2.1": "::ffff:192.0.2.1",
  "2001:db8::1": "2001:DB8:0:0::0001",
};

const EVERYTHING = { username: ".*", filter: { hostname: ".*" } };
/** Patterns that the service accepts: they compile, and are not empty. */
const accepted = (texts: readonly string[]) =>
  patternOn(texts).filter((pattern) => pattern !== "" && compiles(pattern));
const tags = fc.uniqueArray(fc.constantFrom(...TAGS), { minLength: 1, maxLength: 3 });
const filter: fc.Arbitrary<DeviceFilter> = fc.oneof(
  fc.record({ hostname: accepted(NAMES) }),
  fc.record({ tags }),
);
/** Ends of objects, in seconds from the creation; undefined for no end. */
const end = fc.constantFrom(undefined, undefined, 60, 120);
/** The times of the compared logins, in seconds from the creation. An object ends exactly at its end. */
const TIMES = [0, 60];
/** The members who own keys: a member whose membership does not end, one whose membership ends, and a removed one. */
const OWNERS = ["lasting", "ending", "removed"] as const;
const objectSets = fc.record({
  devices: fc.tuple(...NAMES.map((name) => fc.record({ name: fc.constant(name), tags }))),
  keys: fc
    .array(
      fc.record({
        username: accepted(LOGINS),
        filter,
        end,
        owner: fc.constantFrom(undefined, ...OWNERS),
      }),
      { minLength: 1, maxLength: 2 },
    )
    .map((keys) => [
      ...keys,
      ...[undefined, "ending" as const, "removed" as const].map((owner) => ({
        ...EVERYTHING,
        end: undefined,
        owner,
      })),
      { ...EVERYTHING, end: 60, owner: undefined },
    ]),
  rules: fc.array(
    fc.record({
      action: fc.constantFrom("allow", "deny"),
      active: fc.integer({ min: 0, max: 4 }).map((number) => number > 0),
      priority: fc.nat(2),
      source_ip: accepted(Object.keys(ADDRESSES)),
      username: accepted(LOGINS),
      filter,
      end,
    }),
    { minLength: 3, maxLength: 6 },
  ),
});
type ObjectSet = typeof objectSets extends fc.Arbitrary<infer Value> ? Value : never;

/** Creates the objects of a policy in a namespace, through the public API. */
async function create({ token, tenant }: TestUser, { devices, keys, rules }: ObjectSet): Promise<void> {
  // Two additional devices carry all tags, since filters may only refer to existing tags. A third device has no tags.
  const all = [
    ...devices,
    { name: "first", tags: TAGS.slice(0, 2) },
    { name: "second", tags: TAGS.slice(2) },
    { name: "bare", tags: [] },
  ];
  const call = async (id: Parameters<TestApp["call"]>[0], options: object) => {
    const response = await app.call(id, { token, ...options });
    expect(response.status, response.text).toBe(200);
  };
  for (const [index, { name, tags }] of all.entries()) {
    const { uid } = await enroll(app, tenant, `00:00:00:00:00:0${index}`, { hostname: name });
    await call("acceptDevice", { params: { uid } });
    if (tags.length > 0) await call("updateDeviceTags", { params: { uid }, body: { tags } });
  }
  const timeAfter = (seconds: number | undefined) =>
    seconds && new Date(app.services.now().getTime() + seconds * 1000).toISOString();
  const ids = new Map<string, string>();
  for (const owner of OWNERS) {
    const { id, email } = await app.user(`${owner}-${tenant.slice(0, 8)}`);
    const access_expires_at = timeAfter(owner === "ending" ? 60 : undefined);
    await call("inviteMember", { params: { tenant }, body: { email, role: "observer", access_expires_at } });
    ids.set(owner, id);
  }
  for (const [index, { end, owner = "", ...key }] of keys.entries()) {
    const data = Buffer.from(sshKeyLine()).toString("base64");
    const limits = { expires_at: timeAfter(end), owner: ids.get(owner) };
    await call("createPublicKey", { body: { name: `key-${index}`, data, ...key, ...limits } });
  }
  for (const { end, ...rule } of rules)
    await call("createFirewallRule", { body: { ...rule, expires_at: timeAfter(end) } });
  await call("removeMember", { params: { tenant, uid: ids.get("removed") ?? "" } });
}

/** Reads the policy of a namespace in the same way as a review, with the ends and owners from the public API. */
async function read({ token, tenant }: TestUser): Promise<NamespacePolicy> {
  const client = createClient({ url: app.url, credential: tokenCredential(token) });
  const { policy } = await readNamespace(new Connection(client), tenant);
  const keys = new Map((await client.getPublicKeys({})).map((key) => [key.fingerprint, key]));
  const rules = new Map((await client.getFirewallRules({})).map((rule) => [rule.id, rule]));
  const { members } = await client.getNamespace({ params: { tenant } });
  return {
    ...policy,
    keys: policy.keys.map((key) => {
      const { expiresAt, owner } = keys.get(key.fingerprint) ?? {};
      return { ...key, expiresAt, owner };
    }),
    rules: policy.rules.map((rule) => ({ ...rule, expiresAt: rules.get(rule.id)?.expiresAt })),
    members: members.map(({ id, email, status, accessExpiresAt: expiresAt }) => ({
      id,
      email,
      expiresAt,
      isAccepted: status === "accepted",
    })),
  };
}

/** Returns the service's answer for each key: whether the key admits the login to the device. */
const admissions = (fingerprints: string[], username: string, device: object) =>
  Promise.all(
    fingerprints.map(async (fingerprint) => {
      const params = { fingerprint, username };
      return (await internal.call("evaluatePublicKey", { params, body: device })).body as boolean;
    }),
  );

/**
 * Returns the service's firewall decision for a login. Checks that both notations of the address have the same
 * decision.
 */
async function firewall(domain: string, name: string, username: string, address: string) {
  const evaluate = (ip_address: string) =>
    internal.call("evaluateFirewall", { query: { domain, name, username, ip_address } });
  const [plain, other] = await Promise.all([evaluate(address), evaluate(ADDRESSES[address] ?? "")]);
  expect(other.text).toBe(plain.text);
  return plain;
}

const UNKNOWN = Array.from({ length: 16 }, () => "00").join(":");

/** Compares the decisions of the service about the logins of a namespace with `explain()`, at the present time. */
async function compare(policy: NamespacePolicy, domain: string, fingerprints: string[]): Promise<void> {
  const at = app.services.now();
  for (const { uid, name } of policy.devices) {
    const { body: device } = await internal.call("lookupDevice", { query: { domain, name } });
    for (const login of ["root", "ana", "notroot", "Root"]) {
      const admitted = await admissions(fingerprints, login, device);
      for (const address of Object.keys(ADDRESSES)) {
        const { status, body } = await firewall(domain, name, login, address);
        for (const [index, fingerprint] of fingerprints.entries()) {
          const explained = explain(policy, { fingerprint, login, address, uid, at });
          const label = JSON.stringify({ fingerprint, login, address, name, at });
          const denies = explained.rule?.action === "deny";
          expect(admitted[index], label).toBe([undefined, "rule"].includes(explained.deniedBy));
          expect(status, label).toBe(denies ? 403 : 200);
          if (denies) expect(body.message).toBe(`denied by firewall rule ${explained.rule?.id}`);
          expect(admitted[index] && status === 200, label).toBe(explained.allowed);
          outcomes.push(explained.deniedBy ?? "allowed");
        }
      }
    }
  }
}

let outcomes: string[] = [];

test("explain() on the policy from the public API makes the same decisions as the service's internal API", {
  tags: ["long"],
  timeout: 600_000,
}, async () => {
  let round = 0;
  outcomes = [];
  await fc.assert(
    fc.asyncProperty(objectSets, async (objects) => {
      const domain = `lab${round++}`;
      const user = await app.user(`user${round}`, domain);
      await create(user, objects);
      const policy = await read(user);
      expect(policy.devices).toHaveLength(NAMES.length + 3);
      expect(policy.rules).toHaveLength(objects.rules.length);
      const fingerprints = [...policy.keys.map(({ fingerprint }) => fingerprint), UNKNOWN];
      const begun = app.services.now().getTime();
      for (const seconds of TIMES) {
        app.pass((begun - app.services.now().getTime()) / 1000 + seconds);
        await compare(policy, domain, fingerprints);
      }
    }),
    // The test does not shrink a failing case. Each policy needs its own namespace, and shrinking would create hundreds
    // of namespaces.
    { numRuns: 3, endOnFailure: true },
  );
  const counts = Object.fromEntries(
    [...Map.groupBy(outcomes, (outcome) => outcome)].map(([outcome, all]) => [outcome, all.length]),
  );
  console.info(counts);
  expect(counts).toMatchObject({
    allowed: expect.any(Number),
    expired: expect.any(Number),
    owner: expect.any(Number),
  });
  expect(outcomes.length).toBeGreaterThan(1500);
});
