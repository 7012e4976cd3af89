import { type DeviceFilter, firewallDecides, keyAdmits } from "@gatehouse-access/sdk/policy";
import fc from "fast-check";
import { proxyHeader1, proxyHeader2 } from "../support/sshProxy.ts";

/** The devices of the fleet, and their tags. */
export const DEVICES = { "web-1": ["prod", "web"], "web-2": ["web"], "db-1": ["prod", "database"] } as const;
const TAGS = ["prod", "web", "database"];
const LOGINS = ["root", "deploy", "ana"];
/** What clients themselves come from. */
const OWN_ADDRESSES = ["127.0.0.1", "127.0.0.2", "127.0.1.3"];
/** The address of a trusted proxy. */
export const PROXY = "127.0.0.9";
/** What it says that clients come from, and the header that says so, one of each version of its protocol. */
export const PROXIED = { "198.51.100.7": proxyHeader1, "2001:db8::7": proxyHeader2 } as const;
const ADDRESSES = [...OWN_ADDRESSES, ...Object.keys(PROXIED)];
/** Names of the keys that clients have. */
export const KEYS = ["one", "two", "three"] as const;

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
export const policy = fc.record({
  // The third key is not always of the namespace.
  keys: fc.tuple(key, key, fc.option(key, { freq: 2 })),
  rules: fc.array(rule, { minLength: 2, maxLength: 6, size: "max" }),
});
/** Any login at the fleet. */
export const question = fc.record({
  key: fc.constantFrom(...KEYS),
  login,
  device,
  address: fc.constantFrom(...ADDRESSES),
});

/** A namespace's keys and firewall rules. */
export type Policy = typeof policy extends fc.Arbitrary<infer T> ? T : never;
/** Who wants to log in where, with which key, and from where. */
export type Question = typeof question extends fc.Arbitrary<infer T> ? T : never;

/** What becomes of a login. */
export type Outcome = "in" | "refused by key" | "refused by rule";

/** What the policy says, by the functions of the SDK alone. */
export function decide({ keys, rules }: Policy, asked: Question): Outcome {
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

const withKeys = (change: (key: Key) => Key) => (asked: Question, declared: Policy) => {
  const [one, two, three] = declared.keys;
  return decide({ ...declared, keys: [change(one), change(two), three && change(three)] }, asked);
};
const withRules = (change: (rules: Rule[]) => Rule[]) => (asked: Question, declared: Policy) =>
  decide({ ...declared, rules: change(declared.rules) }, asked);
const withEachRule = (change: Partial<Rule>) =>
  withRules((rules) => rules.map((each) => ({ ...each, ...change })));

/** Ways to decide wrongly, which the logins of a test must be able to tell from the right one. */
export const SLIPS: Readonly<Record<string, (asked: Question, declared: Policy) => Outcome>> = {
  "login names of keys do not count": withKeys((each) => ({ ...each, username: ".*" })),
  "filters of keys do not count": withKeys((each) => ({ ...each, filter: {} })),
  "tags of keys do not count": withKeys((each) => ({ ...each, filter: each.filter.tags ? {} : each.filter })),
  "the weakest rule decides": withRules((rules) => rules.map((r) => ({ ...r, priority: -r.priority }))),
  "priorities do not count": withEachRule({ priority: 1 }),
  "of rules of one priority, the oldest decides": withRules((rules) => rules.toReversed()),
  "inactive rules count": withEachRule({ active: true }),
  "login names of rules do not count": withEachRule({ username: ".*" }),
  "addresses do not count": withEachRule({ sourceIp: ".*" }),
  "filters of rules do not count": withEachRule({ filter: {} }),
  "tags of rules do not count": withRules((rules) =>
    rules.map((each) => ({ ...each, filter: each.filter.tags ? {} : each.filter })),
  ),
  "the address is the proxy's": (asked, declared) =>
    decide(declared, { ...asked, address: asked.address in PROXIED ? PROXY : asked.address }),
};

/** How often each slip was told from the right decision. */
export type Told = Map<string, number>;

/** The slips that a login tells from the right decision. */
function toldBy(declared: Policy, asked: Question): string[] {
  const right = decide(declared, asked);
  return Object.keys(SLIPS).filter((name) => SLIPS[name]?.(asked, declared) !== right);
}

/** What slips are worth: the more, the less they were told so far. */
const worth = (names: Iterable<string>, told: Told): number =>
  [...names].reduce((sum, name) => sum + 1 / (1 + (told.get(name) ?? 0)), 0);

/** The one of some policies whose logins tell most. */
export function choosePolicy(some: readonly (readonly [Policy, readonly Question[]])[], told: Told) {
  const rated = some.map(([declared, possible]) => ({
    ...{ declared, possible },
    worth: worth(new Set(possible.flatMap((asked) => toldBy(declared, asked))), told),
  }));
  return rated.reduce((best, each) => (each.worth > best.worth ? each : best));
}

/** As many of the questions: in turn the one that tells most of what is left, and the one that tells least. */
export function chooseQuestions(declared: Policy, possible: readonly Question[], most: number, told: Told) {
  const left = possible.map((asked) => ({ asked, tells: toldBy(declared, asked) }));
  return Array.from({ length: most }, (_, index) => {
    if (index % 2 === 0) left.sort((a, b) => worth(b.tells, told) - worth(a.tells, told));
    const [next] = left.splice(index % 2 === 0 ? 0 : -1, 1);
    if (next === undefined) throw new Error("too few questions to choose from");
    for (const name of next.tells) told.set(name, (told.get(name) ?? 0) + 1);
    return next.asked;
  });
}
