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
/** What clients themselves come from. */
const OWN_ADDRESSES = ["127.0.0.1", "127.0.0.2", "127.0.1.3"];
/** The address of a trusted proxy. */
const PROXY = "127.0.0.9";
/** What it says that clients come from, and the header that says so, one of each version of its protocol. */
const PROXIED = { "198.51.100.7": proxyHeader1, "2001:db8::7": proxyHeader2 } as const;
const ADDRESSES = [...OWN_ADDRESSES, ...Object.keys(PROXIED)];
/** Names of the keys that clients have. */
const KEYS = ["one", "two", "three"] as const;

const login = fc.constantFrom(...LOGINS);
const device = fc.constantFrom(...(Object.keys(DEVICES) as (keyof typeof DEVICES)[]));
/** The usual value two times of three, so that of the parts of a policy several are for one login. */
const mostly = <T>(usual: T, other: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof({ weight: 2, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: other });
const username = mostly(
  ".*",
  fc.constantFrom("root", "^deploy$", "ro.t|ana", "a", "^(root|deploy)$", "nobody-else"),
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
/** Any policy of the fleet. */
const policy = fc.record({
  // The third key is not always of the namespace.
  keys: fc.tuple(key, key, fc.option(key, { freq: 2 })),
  rules: fc.array(rule, { minLength: 2, maxLength: 6, size: "max" }),
});
/** Any login at the fleet. */
const question = fc.record({
  key: fc.constantFrom(...KEYS),
  login,
  device,
  address: fc.constantFrom(...ADDRESSES),
});

/** A namespace's keys and firewall rules. */
type Policy = typeof policy extends fc.Arbitrary<infer T> ? T : never;
/** Who wants to log in where, with which key, and from where. */
type Question = typeof question extends fc.Arbitrary<infer T> ? T : never;

/** What becomes of a login. */
type Outcome = "in" | "refused by key" | "refused by rule";

/** What the policy says, by the functions of the SDK alone. */
function decide({ keys, rules }: Policy, asked: Question): Outcome {
  const used = keys[KEYS.indexOf(asked.key)] ?? null;
  const tags = DEVICES[asked.device];
  if (used === null || !keyAdmits(used, { name: asked.device, tags }, asked.login)) return "refused by key";
  const { allowed } = firewallDecides(rules, {
    deviceName: asked.device,
    deviceTags: tags,
    login: asked.login,
    sourceIp: asked.address,
  });
  return allowed ? "in" : "refused by rule";
}

type Key = Policy["keys"][0];
type Rule = Policy["rules"][number];

const withKeys = (change: (key: Key) => Key) => (declared: Policy, asked: Question) => {
  const [one, two, three] = declared.keys;
  return decide({ ...declared, keys: [change(one), change(two), three && change(three)] }, asked);
};
const withRules = (change: (rules: Rule[]) => Rule[]) => (declared: Policy, asked: Question) =>
  decide({ ...declared, rules: change(declared.rules) }, asked);
const withEachRule = (change: Partial<Rule>) =>
  withRules((rules) => rules.map((each) => ({ ...each, ...change })));
const withoutTags = <T extends { readonly filter: DeviceFilter }>(each: T): T => ({
  ...each,
  filter: each.filter.tags ? {} : each.filter,
});

/** Wrong ways to decide, each of which the logins of a test must tell from the right one. */
const SLIPS: Readonly<Record<string, (declared: Policy, asked: Question) => Outcome>> = {
  "login names of keys do not count": withKeys((each) => ({ ...each, username: ".*" })),
  "filters of keys do not count": withKeys((each) => ({ ...each, filter: {} })),
  "tags of keys do not count": withKeys(withoutTags),
  "the weakest rule decides": withRules((rules) => rules.map((r) => ({ ...r, priority: -r.priority }))),
  "priorities do not count": withEachRule({ priority: 1 }),
  "of rules of one priority, the oldest decides": withRules((rules) => rules.toReversed()),
  "inactive rules count": withEachRule({ active: true }),
  "login names of rules do not count": withEachRule({ username: ".*" }),
  "addresses do not count": withEachRule({ sourceIp: ".*" }),
  "filters of rules do not count": withEachRule({ filter: {} }),
  "tags of rules do not count": withRules((rules) => rules.map(withoutTags)),
  "the address is the proxy's": (declared, asked) =>
    decide(declared, { ...asked, address: asked.address in PROXIED ? PROXY : asked.address }),
};

/** The logins of this seed tell all {@link SLIPS} from the right decision. */
const SEED = 823;

/** Logins of a client at a time: they share the machine's cores. */
const AT_A_TIME = 6;

/** What the operator reads of logins, as what became of them. */
const TOLD: Readonly<Record<string, Outcome>> = {
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

  /** Makes the namespace's keys and rules those of a policy. */
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

  const targetOf = ({ login, device }: Question) => `${login}@${fleet.namespace}.${device}`;

  /** Logs in, and sees whether that is what the policy says. */
  async function compare(declared: Policy, asked: Question): Promise<Outcome> {
    const expected = decide(declared, asked);
    const proxy = proxies.get(asked.address);
    const { code, stdout, stderr } = await ssh({
      to: targetOf(asked),
      key: paths.get(asked.key) as string,
      command: "echo $GATEHOUSE_HOST",
      ...(proxy ? { port: proxy.port } : { port: fleet.port, from: asked.address }),
    });
    const outcome = code === 0 && stdout === `${asked.device}\n` ? "in" : stderr.trim();
    const refused = `${targetOf(asked)}@127.0.0.1: Permission denied (publickey,password).`;
    const wanted = expected === "in" ? "in" : refused;
    expect(outcome, JSON.stringify({ declared, asked, expected })).toBe(wanted);
    return expected;
  }

  /** What the operator has read of logins since a line of the log. */
  const toldSince = (line: number) =>
    fleet.service
      .logs()
      .slice(line)
      .filter(({ msg }) => msg === "login to a device" || msg === "login to a device refused")
      .map(({ username, address, refused }) =>
        [username, address, refused === undefined ? "in" : (TOLD[String(refused)] ?? refused)].join(" "),
      );

  async function compareMany(rounds: number, each: number): Promise<void> {
    const outcomes = new Map<string, number>();
    const questions = fc.array(question, { minLength: each, maxLength: each });
    const some = fc.sample(fc.noBias(fc.tuple(policy, questions)), { numRuns: rounds, seed: SEED });
    const slips = Object.entries(SLIPS).filter(([, slip]) =>
      some.some(([declared, asked]) => asked.some((one) => slip(declared, one) !== decide(declared, one))),
    );
    expect(slips.map(([name]) => name)).toEqual(Object.keys(SLIPS));
    for (const [declared, asked] of some) {
      await declare(declared);
      const line = fleet.service.logs().length;
      const expected: string[] = [];
      await someAtATime(asked, AT_A_TIME, async (one) => {
        const outcome = await compare(declared, one);
        expected.push([targetOf(one), one.address, outcome].join(" "));
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      });
      // Clients see only that they are refused; the operator, that it was for the right reason.
      await expect.poll(() => toldSince(line).sort()).toEqual(expected.sort());
    }
    // All of them occur, so that none is right by always being the same.
    expect([...outcomes.keys()].sort()).toEqual(["in", "refused by key", "refused by rule"]);
    expect([...outcomes.values()].reduce((sum, count) => sum + count, 0)).toBe(rounds * each);
    console.log(`${rounds * each} logins compared:`, Object.fromEntries(outcomes));
  }

  it("get in exactly when the policy says so", () => compareMany(10, 5));

  it("get in exactly when the policy says so, 400 times", { tags: ["long"], timeout: 600_000 }, () =>
    compareMany(40, 10),
  );
});
