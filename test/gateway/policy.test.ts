import { type DeviceFilter, firewallDecides, keyAdmits } from "@gatehouse-access/sdk/policy";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  newKey,
  openFolder,
  publicHalf,
  type SshService,
  someAtATime,
  ssh,
  startAgent,
  startSshService,
  type TestAgent,
  withoutSsh,
} from "../support/sshFleet.ts";
import { proxyHeader1, proxyHeader2, type SshProxy, startSshProxy } from "../support/sshProxy.ts";

/** The devices of the fleet, and their tags. */
const DEVICES = { "web-1": ["prod", "web"], "web-2": ["web"], "db-1": ["prod", "database"] } as const;
const TAGS = ["prod", "web", "database"];
const LOGINS = ["root", "deploy", "ana"];
/** Addresses of clients that connect without the proxy. */
const OWN_ADDRESSES = ["127.0.0.1", "127.0.0.2", "127.0.1.3"];
/** The address of a trusted proxy. */
const PROXY = "127.0.0.9";
/**
 * Client addresses that the proxy reports. Each value is the function that creates the PROXY protocol header for the
 * address: version 1 for the first address, version 2 for the second.
 */
const PROXIED = { "198.51.100.7": proxyHeader1, "2001:db8::7": proxyHeader2 } as const;
const ADDRESSES = [...OWN_ADDRESSES, ...Object.keys(PROXIED)];
/** Names of the clients' keys. */
const KEYS = ["one", "two", "three"] as const;

const login = fc.constantFrom(...LOGINS);
const device = fc.constantFrom(...(Object.keys(DEVICES) as (keyof typeof DEVICES)[]));
/**
 * Generates the usual value in two of three cases. With independent random values, few keys and rules would match the
 * same login.
 */
const mostly = <T>(usual: T, other: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof({ weight: 2, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: other });
const username = mostly(
  ".*",
  fc.constantFrom("root", "^deploy$", "ro.t|ana", "a", "^(root|deploy)$", "unused"),
);
const filter = mostly<DeviceFilter>(
  { hostname: ".*" },
  fc.oneof(
    fc.record({ hostname: fc.constantFrom("^web-", "db-1", "1$", "^web-2$", "none") }),
    fc.record({ tags: fc.uniqueArray(fc.constantFrom(...TAGS), { minLength: 1, maxLength: 2 }) }),
  ),
);
const key = fc.record({ username, filter });
const rule = fc.record({
  action: fc.constantFrom("allow" as const, "deny" as const),
  active: fc.constantFrom(true, true, false),
  priority: fc.integer({ min: 1, max: 3 }),
  sourceIp: mostly(
    ".*",
    fc.constantFrom("^127\\.0\\.0\\.", "127.0.0.2", "^127\\.0\\.1\\.3$", "^198\\.51\\.", ":", "^10\\."),
  ),
  username,
  filter,
});
/** Generates a random policy for the fleet. */
const policy = fc.record({
  // The third key is optional.
  keys: fc.tuple(key, key, fc.option(key, { freq: 2 })),
  rules: fc.array(rule, { minLength: 2, maxLength: 6, size: "max" }),
});
/** A random login to a device of the fleet. */
const loginAttempt = fc.record({
  key: fc.constantFrom(...KEYS),
  login,
  device,
  address: fc.constantFrom(...ADDRESSES),
});

/** A namespace's keys and firewall rules. */
type Policy = typeof policy extends fc.Arbitrary<infer T> ? T : never;
/** A login attempt with its key, its device and its address. */
type LoginAttempt = typeof loginAttempt extends fc.Arbitrary<infer T> ? T : never;

/** The outcome of a login attempt. */
type Outcome = "in" | "refused by key" | "refused by rule";

/** Evaluates the policy for a login attempt, only with functions of the SDK. */
function decide({ keys, rules }: Policy, attempt: LoginAttempt): Outcome {
  const used = keys[KEYS.indexOf(attempt.key)] ?? null;
  const tags = DEVICES[attempt.device];
  if (used === null || !keyAdmits(used, { name: attempt.device, tags }, attempt.login))
    return "refused by key";
  const { allowed } = firewallDecides(rules, {
    deviceName: attempt.device,
    deviceTags: tags,
    login: attempt.login,
    sourceIp: attempt.address,
    at: new Date(),
  });
  return allowed ? "in" : "refused by rule";
}

type Key = Policy["keys"][0];
type Rule = Policy["rules"][number];

const withKeys = (change: (key: Key) => Key) => (declared: Policy, attempt: LoginAttempt) => {
  const [one, two, three] = declared.keys;
  return decide({ ...declared, keys: [change(one), change(two), three && change(three)] }, attempt);
};
const withRules = (change: (rules: Rule[]) => Rule[]) => (declared: Policy, attempt: LoginAttempt) =>
  decide({ ...declared, rules: change(declared.rules) }, attempt);
const withEachRule = (change: Partial<Rule>) =>
  withRules((rules) => rules.map((each) => ({ ...each, ...change })));
const withoutTags = <T extends { readonly filter: DeviceFilter }>(each: T): T => ({
  ...each,
  filter: each.filter.tags ? {} : each.filter,
});

/** Wrong implementations of the policy evaluation. The generated logins must detect each of them. */
const WRONG_EVALUATIONS: Readonly<Record<string, (declared: Policy, attempt: LoginAttempt) => Outcome>> = {
  "login names of keys are ignored": withKeys((each) => ({ ...each, username: ".*" })),
  "filters of keys are ignored": withKeys((each) => ({ ...each, filter: {} })),
  "tags of keys are ignored": withKeys(withoutTags),
  "the weakest rule decides": withRules((rules) => rules.map((r) => ({ ...r, priority: -r.priority }))),
  "priorities are ignored": withEachRule({ priority: 1 }),
  "the oldest rule of a priority decides": withRules((rules) => rules.toReversed()),
  "inactive rules match": withEachRule({ active: true }),
  "login names of rules are ignored": withEachRule({ username: ".*" }),
  "addresses are ignored": withEachRule({ sourceIp: ".*" }),
  "filters of rules are ignored": withEachRule({ filter: {} }),
  "tags of rules are ignored": withRules((rules) => rules.map(withoutTags)),
  "the address is the proxy's": (declared, attempt) =>
    decide(declared, { ...attempt, address: attempt.address in PROXIED ? PROXY : attempt.address }),
};

/**
 * The seed of the random policies and logins. With this seed, each of the {@link WRONG_EVALUATIONS} returns a wrong
 * outcome for at least one login.
 */
const SEED = 823;

/** Number of concurrent logins. The clients share the machine's cores with the service. */
const AT_A_TIME = 6;

/** Outcomes of refused logins, by the reason in the log. */
const OUTCOMES: Readonly<Record<string, Outcome>> = {
  key: "refused by key",
  filter: "refused by key",
  firewall: "refused by rule",
};

describe.skipIf(withoutSsh)(`logins by OpenSSH${withoutSsh ? ` (${withoutSsh})` : ""}`, () => {
  const folder = openFolder();
  const paths = new Map<string, string>();
  let fleet: SshService;
  let agents: TestAgent[] = [];
  const proxies = new Map<string, SshProxy>();

  beforeAll(async () => {
    for (const name of KEYS) paths.set(name, newKey(folder.path, name, name === "two" ? "rsa" : "ed25519"));
    fleet = await startSshService({ flags: ["--trusted-proxies", PROXY] });
    const { service, tenant, client, port } = fleet;
    for (const [address, headerOf] of Object.entries(PROXIED)) {
      proxies.set(address, await startSshProxy({ port, from: PROXY, header: headerOf(address) }));
    }
    agents = await Promise.all(
      Object.keys(DEVICES).map((hostname) =>
        startAgent({ url: service.url, tenant, hostname, folder: folder.path }),
      ),
    );
    for (const { uid, hostname } of agents) {
      await client.acceptDevice({ params: { uid } });
      const tags = [...DEVICES[hostname as keyof typeof DEVICES]];
      await client.updateDeviceTags({ params: { uid }, body: { tags } });
    }
  });
  afterAll(async () => {
    await Promise.all(agents.map((agent) => agent.stop()));
    for (const proxy of proxies.values()) proxy.stop();
    await fleet?.stop();
    folder.remove();
  });

  /** Replaces the namespace's keys and rules with the keys and rules of a policy. */
  async function declare({ keys, rules }: Policy): Promise<void> {
    const { client } = fleet;
    for (const { fingerprint } of await client.getPublicKeys({})) {
      await client.deletePublicKey({ params: { fingerprint } });
    }
    for (const { id } of await client.getFirewallRules({}))
      await client.deleteFirewallRule({ params: { id } });
    for (const [index, declared] of keys.entries()) {
      if (declared === null) continue;
      const name = KEYS[index] as string;
      const { username, filter } = declared;
      const data = publicHalf(paths.get(name) as string);
      await client.createPublicKey({
        body: { name, data, username, filter: filter as { hostname: string } },
      });
    }
    for (const { filter, ...body } of rules) {
      await client.createFirewallRule({ body: { ...body, filter: filter as { hostname: string } } });
    }
  }

  const targetOf = ({ login, device }: LoginAttempt) => `${login}@${fleet.namespace}.${device}`;

  /** Logs in over SSH, and checks that the outcome is the one that the policy requires. */
  async function compare(declared: Policy, attempt: LoginAttempt): Promise<Outcome> {
    const expected = decide(declared, attempt);
    const proxy = proxies.get(attempt.address);
    const { code, stdout, stderr } = await ssh({
      to: targetOf(attempt),
      key: paths.get(attempt.key) as string,
      command: "echo $GATEHOUSE_HOST",
      ...(proxy ? { port: proxy.port } : { port: fleet.port, from: attempt.address }),
    });
    const outcome = code === 0 && stdout === `${attempt.device}\n` ? "in" : stderr.trim();
    const refused = `${targetOf(attempt)}@127.0.0.1: Permission denied (publickey,password).`;
    const expectedOutput = expected === "in" ? "in" : refused;
    expect(outcome, JSON.stringify({ declared, attempt, expected })).toBe(expectedOutput);
    return expected;
  }

  /** Returns the logins that the log contains after a line number. */
  const loggedSince = (line: number) =>
    fleet.service
      .logs()
      .slice(line)
      .filter(({ msg }) => msg === "login to a device" || msg === "login to a device refused")
      .map(({ username, address, refused }) =>
        [username, address, refused === undefined ? "in" : (OUTCOMES[String(refused)] ?? refused)].join(" "),
      );

  async function compareMany(rounds: number, each: number): Promise<void> {
    const outcomes = new Map<string, number>();
    const attempts = fc.array(loginAttempt, { minLength: each, maxLength: each });
    const some = fc.sample(fc.noBias(fc.tuple(policy, attempts)), { numRuns: rounds, seed: SEED });
    const distinguished = Object.entries(WRONG_EVALUATIONS).filter(([, wrong]) =>
      some.some(([declared, attempt]) =>
        attempt.some((one) => wrong(declared, one) !== decide(declared, one)),
      ),
    );
    expect(distinguished.map(([name]) => name)).toEqual(Object.keys(WRONG_EVALUATIONS));
    for (const [declared, attempt] of some) {
      await declare(declared);
      const line = fleet.service.logs().length;
      const expected: string[] = [];
      await someAtATime(attempt, AT_A_TIME, async (one) => {
        const outcome = await compare(declared, one);
        expected.push([targetOf(one), one.address, outcome].join(" "));
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      });
      // A refusal shows no reason to the client, so the test reads the reason from the log.
      await expect.poll(() => loggedSince(line).sort()).toEqual(expected.sort());
    }
    // All outcomes must occur. A gateway that always returns the same outcome cannot pass.
    expect([...outcomes.keys()].sort()).toEqual(["in", "refused by key", "refused by rule"]);
    expect([...outcomes.values()].reduce((sum, count) => sum + count, 0)).toBe(rounds * each);
    console.log(`${rounds * each} logins compared:`, Object.fromEntries(outcomes));
  }

  it("succeed exactly if the policy allows them", () => compareMany(10, 5));

  it("succeed exactly if the policy allows them, 400 times", { tags: ["long"], timeout: 600_000 }, () =>
    compareMany(40, 10),
  );
});
