import { createClient, tokenCredential } from "@gatehouse-access/sdk";
import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readEstate } from "../../provider/estate/namespaceState.ts";
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

/** Patterns that the service accepts: they compile, and are not empty. */
const accepted = (texts: readonly string[]) =>
  patternOn(texts).filter((pattern) => pattern !== "" && compiles(pattern));
const tags = fc.uniqueArray(fc.constantFrom(...TAGS), { minLength: 1, maxLength: 3 });
const filter: fc.Arbitrary<DeviceFilter> = fc.oneof(
  fc.record({ hostname: accepted(NAMES) }),
  fc.record({ tags }),
);
const objectSets = fc.record({
  devices: fc.tuple(...NAMES.map((name) => fc.record({ name: fc.constant(name), tags }))),
  keys: fc
    .array(fc.record({ username: accepted(LOGINS), filter }), { minLength: 1, maxLength: 2 })
    .map((keys) => [...keys, { username: ".*", filter: { hostname: ".*" } }]),
  rules: fc.array(
    fc.record({
      action: fc.constantFrom("allow", "deny"),
      active: fc.integer({ min: 0, max: 4 }).map((number) => number > 0),
      priority: fc.nat(2),
      source_ip: accepted(Object.keys(ADDRESSES)),
      username: accepted(LOGINS),
      filter,
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
  for (const [index, key] of keys.entries()) {
    const data = Buffer.from(sshKeyLine()).toString("base64");
    await call("createPublicKey", { body: { name: `key-${index}`, data, ...key } });
  }
  for (const rule of rules) await call("createFirewallRule", { body: rule });
}

/** Reads the policy of a namespace in the same way as a review. */
async function read({ token, tenant }: TestUser): Promise<NamespacePolicy> {
  const connection = new Connection(createClient({ url: app.url, credential: tokenCredential(token) }));
  return (await readEstate(connection, tenant)).policy;
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

test("explain() on the policy from the public API makes the same decisions as the service's internal API", async () => {
  let [questions, allowed, round] = [0, 0, 0];
  await fc.assert(
    fc.asyncProperty(objectSets, async (objects) => {
      const domain = `lab${round++}`;
      const user = await app.user(`user${round}`, domain);
      await create(user, objects);
      const policy = await read(user);
      expect(policy.devices).toHaveLength(NAMES.length + 3);
      expect(policy.rules).toHaveLength(objects.rules.length);
      const fingerprints = [...policy.keys.map(({ fingerprint }) => fingerprint), UNKNOWN];
      for (const { uid, name } of policy.devices) {
        const { body: device } = await internal.call("lookupDevice", { query: { domain, name } });
        for (const login of ["root", "ana", "notroot", "Root"]) {
          const admitted = await admissions(fingerprints, login, device);
          for (const address of Object.keys(ADDRESSES)) {
            const { status, body } = await firewall(domain, name, login, address);
            for (const [index, fingerprint] of fingerprints.entries()) {
              const explained = explain(policy, { fingerprint, login, address, uid });
              const label = JSON.stringify({ fingerprint, login, address, name });
              const denies = explained.rule?.action === "deny";
              expect(admitted[index], label).toBe([undefined, "rule"].includes(explained.deniedBy));
              expect(status, label).toBe(denies ? 403 : 200);
              if (denies) expect(body.message).toBe(`denied by firewall rule ${explained.rule?.id}`);
              expect(admitted[index] && status === 200, label).toBe(explained.allowed);
              questions += 1;
              if (explained.allowed) allowed += 1;
            }
          }
        }
      }
    }),
    // The test does not shrink a failing case. Each policy needs its own namespace, and shrinking would create hundreds
    // of namespaces.
    { numRuns: 3, endOnFailure: true },
  );
  console.info(`${questions} questions, ${allowed} allowed`);
  expect(questions).toBeGreaterThan(500);
}, 180_000);
