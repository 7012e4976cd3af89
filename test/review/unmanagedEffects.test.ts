import { describe, expect, test } from "vitest";
import { driftMeaning } from "../../provider/drift/driftMeaning.ts";
import type { LiveObject } from "../../provider/model/object.ts";
import { wideningOf } from "../../provider/privileges/effects.ts";
import type { AccessKey, AccessPolicy, AccessRule } from "../../sdk/policy/index.ts";
import { accessDevices, identityFixture, type NamespaceFixture, namespaceOf } from "./support/namespace.ts";
import { device, estate, rule } from "./support/planned.ts";
import { accessKey, accessPolicy, serviceAccount } from "./support/policyObjects.ts";
import { planOf, TENANT } from "./support/steps.ts";

const key = (name: string, tags: readonly string[], more: Partial<AccessKey> = {}): AccessKey =>
  accessKey(name, { username: "^root$", filter: tags.length > 0 ? { tags } : { hostname: ".*" }, ...more });

interface World {
  readonly devices: readonly ReturnType<typeof device>[];
  readonly keys?: readonly AccessKey[];
  readonly rules?: readonly AccessRule[];
}

const legacy = ({ devices, keys = [], rules = [] }: World): NamespaceFixture => ({
  ...estate,
  devices,
  policy: { devices: accessDevices(devices), keys, rules },
});

const backup = serviceAccount("backup", { id: "sa-backup" });

const policy = (name: string): AccessPolicy =>
  accessPolicy(name, { subject: { type: "user", value: backup.id }, filter: { hostname: ".*" } });

const identity = (...policies: readonly AccessPolicy[]): NamespaceFixture => ({
  ...legacy({ devices: [device("web-01", [])] }),
  identity: identityFixture({ policies, serviceAccounts: [backup] }),
});

/** Returns the sentences about the unmanaged objects of a fixture, by name, and the sentences about the limits. */
function widening(
  fixture: NamespaceFixture,
  isUnmanaged: (object: LiveObject) => boolean,
  isExcepted: (object: LiveObject) => boolean = () => false,
) {
  const state = namespaceOf(fixture).inOrder();
  const unmanaged = state.watched().filter(isUnmanaged);
  const { of, notEvaluated } = wideningOf(state, unmanaged, isExcepted);
  return { of: new Map(Array.from(of, ([{ name }, sentences]) => [name, sentences])), notEvaluated };
}

const isOf =
  (...kinds: readonly string[]) =>
  ({ definition }: LiveObject) =>
    kinds.includes(definition.name);

/** Returns a test for objects by the end of their ids. */
const hasId =
  (ids: ReadonlySet<string>) =>
  ({ id }: LiveObject) =>
    ids.has(id.slice(id.indexOf("/") + 1));

const BACKUP_GAINS = "service account backup gains login root on web-01";
const TOGETHER = `with other unmanaged objects: ${BACKUP_GAINS}`;

describe("an exception", () => {
  const isIdentity = isOf("AccessPolicy", "ServiceAccount");

  test("of a service account keeps the access of one unmanaged policy", () => {
    const { of } = widening(identity(policy("p1")), isIdentity, isOf("ServiceAccount"));
    expect(of.get("p1")).toEqual([BACKUP_GAINS]);
  });

  test("of a service account keeps the access that each of two unmanaged policies gives", () => {
    const { of, notEvaluated } = widening(
      identity(policy("p1"), policy("p2")),
      isIdentity,
      isOf("ServiceAccount"),
    );
    expect([of.get("p1"), of.get("p2")]).toEqual([[TOGETHER], [TOGETHER]]);
    expect(notEvaluated).toEqual([]);
  });

  test("of a service account and a policy keeps the access of an equal policy", () => {
    const excepted = hasId(new Set(["sa-backup", "p2"]));
    const { of } = widening(identity(policy("p1"), policy("p2")), isIdentity, excepted);
    expect(of.get("p1")).toEqual([TOGETHER]);
  });

  test("of all objects gives no sentence about open objects", () => {
    const { notEvaluated } = widening(identity(policy("p1"), policy("p2")), isIdentity, () => true);
    expect(notEvaluated).toEqual([]);
  });

  test("of a key keeps the access that each of two unmanaged rules gives", () => {
    const devices = [device("web-01", [])];
    const everywhere = { filter: { hostname: ".*" } };
    const rules = [
      rule("deny", everywhere),
      ...["r1", "r2"].map((id) => rule(id, { ...everywhere, action: "allow", priority: 9 })),
    ];
    const { of } = widening(
      legacy({ devices, keys: [key("ana", [])], rules }),
      (object) => !hasId(new Set(["deny"]))(object) && isOf("PublicKey", "FirewallRule")(object),
      isOf("PublicKey"),
    );
    expect(of.get("allow at priority 9")).toEqual([
      "with other unmanaged objects: key ana gains login root on web-01",
    ]);
  });

  test("of a key whose access is not an open object's access does not block an open key without access", () => {
    const devices = [device("web-01", []), device("lab-02", [])];
    const deny = rule("deny", { filter: { hostname: "^web" } });
    const keys = [
      key("ana", [], { filter: { hostname: "^lab" } }),
      key("bea", [], { filter: { hostname: "^web" } }),
    ];
    const { of, notEvaluated } = widening(
      legacy({ devices, keys, rules: [deny] }),
      isOf("PublicKey", "FirewallRule"),
      hasId(new Set(["ana"])),
    );
    expect([of.get("bea"), of.get("deny at priority 5"), notEvaluated]).toEqual([[], [], []]);
  });
});

/** A namespace whose managed rule denies every login. For each device, two unmanaged rules allow the logins. */
function pairsOfRules(count: number) {
  const names = Array.from({ length: count }, (_, index) => `dev-${String(index).padStart(2, "0")}`);
  const rules = names.flatMap((name, index) =>
    ["a", "b"].map((half, offset) =>
      rule(`${name}-${half}`, {
        action: "allow",
        priority: 10 + 2 * index + offset,
        filter: { hostname: `^${name}$` },
      }),
    ),
  );
  const devices = names.map((name) => device(name, []));
  const deny = rule("deny", { filter: { hostname: ".*" }, priority: 1 });
  const fixture = legacy({ devices, keys: [key("ana", [])], rules: [deny, ...rules] });
  return { fixture, rules, isUnmanaged: hasId(new Set(rules.map(({ id }) => id))) };
}

describe("equal unmanaged rules", () => {
  test.each([
    ["first", (index: number) => index < 4],
    ["last", (index: number) => index >= 20],
  ])("without an exception are evaluated before those with one, if they are the %s ones", (_, isOpen) => {
    const { fixture, rules, isUnmanaged } = pairsOfRules(12);
    const open = new Set(rules.flatMap(({ id }, index) => (isOpen(index) ? [id] : [])));
    const { of, notEvaluated } = widening(fixture, isUnmanaged, (object) => !hasId(open)(object));
    for (const { id, priority } of rules.filter(({ id }) => open.has(id)))
      expect(of.get(`allow at priority ${priority}`), id).toEqual([
        `with other unmanaged objects: key ana gains login root on ${id.slice(0, -2)}`,
      ]);
    expect(notEvaluated).toEqual([]);
  });

  test("beyond the limit are reported as not evaluated", () => {
    const { fixture, isUnmanaged } = pairsOfRules(12);
    expect(widening(fixture, isUnmanaged).notEvaluated).toEqual([
      "the access of 4 further unmanaged objects was not evaluated: the limit is 20",
    ]);
  });
});

describe("an unmanaged tag", () => {
  const isTag = isOf("DeviceTagAttachment");

  test("gives access only if a filter contains the tag", () => {
    const devices = [device("web-01", ["prod", "rack-7"])];
    const { of, notEvaluated } = widening(legacy({ devices, keys: [key("ana", ["prod"])] }), isTag);
    expect(of).toEqual(
      new Map([
        ["prod on web-01", ["key ana gains login root on web-01"]],
        ["rack-7 on web-01", []],
      ]),
    );
    expect(notEvaluated).toEqual([]);
  });

  test("gives access that another tag of the device gives too", () => {
    const devices = [device("web-01", ["prod", "web"])];
    const { of } = widening(legacy({ devices, keys: [key("ana", ["prod", "web"])] }), isTag);
    const gains = ["key ana gains login root on web-01"];
    expect([of.get("prod on web-01"), of.get("web on web-01")]).toEqual([gains, gains]);
  });

  test("gives no access if the filter with the tag has a pattern", () => {
    const devices = [device("web-01", ["prod"])];
    const filter = { hostname: "^lab", tags: ["prod"] };
    const { of } = widening(legacy({ devices, keys: [key("ana", [], { filter })] }), isTag);
    expect(of.get("prod on web-01")).toEqual([]);
  });

  test("gives access that an unmanaged rule gives too", () => {
    const devices = [device("web-01", ["prod"]), device("web-02", ["prod"])];
    const allow = { action: "allow", priority: 9 } as const;
    const rules = [
      rule("deny", { filter: { hostname: ".*" } }),
      rule("managed", { ...allow, filter: { tags: ["prod"] } }),
      rule("extra", { ...allow, priority: 10, filter: { hostname: "^web-01$" } }),
    ];
    const { of } = widening(
      legacy({ devices, keys: [key("ana", [])], rules }),
      (object) => isTag(object) || hasId(new Set(["extra"]))(object),
    );
    expect([of.get("allow at priority 10"), of.get("prod on web-01"), of.get("prod on web-02")]).toEqual([
      ["with other unmanaged objects: key ana gains login root on web-01"],
      ["with other unmanaged objects: key ana gains login root on web-01"],
      ["key ana gains login root on web-02"],
    ]);
  });

  test("beyond the limit is reported as not evaluated if an unmanaged rule gives the same access", () => {
    const names = Array.from({ length: 30 }, (_, index) => `web-${index + 10}`);
    const rules = [
      rule("deny", { filter: { hostname: ".*" } }),
      rule("managed", { action: "allow", priority: 9 }),
      rule("extra", { action: "allow", priority: 10, filter: { hostname: "^web" } }),
    ];
    const { of, notEvaluated } = widening(
      legacy({ devices: names.map((name) => device(name, ["prod"])), keys: [key("ana", [])], rules }),
      (object) => isTag(object) || hasId(new Set(["extra"]))(object),
    );
    expect([...of.values()].filter(({ length }) => length > 0)).toHaveLength(20);
    expect(notEvaluated).toEqual([
      "unmanaged objects give access together, and 11 of them were not evaluated: the limit is 20",
    ]);
  });

  test("of many devices is listed with the logins for the first devices only", () => {
    const devices = Array.from({ length: 30 }, (_, index) =>
      device(`web-${String(index).padStart(2, "0")}`, ["prod"]),
    );
    const { of } = widening(legacy({ devices, keys: [key("ana", ["prod"])] }), isTag);
    expect(of.get("prod on web-00")).toEqual(["key ana gains login root on web-00"]);
    expect(of.get("prod on web-19")).toEqual(["key ana gains login root on web-19"]);
    expect(of.get("prod on web-20")).toEqual(["admits logins on the device"]);
    expect(of.get("prod on web-29")).toEqual(["admits logins on the device"]);
  });
});

describe("the drift of a namespace whose access is not known", () => {
  const UNKNOWN = "the effect on access is not known";

  test("has an unknown effect for each unmanaged object that can decide about logins", () => {
    const known = identity(policy("p1"));
    const devices = [device("web-01", ["prod"])];
    const fixture = { ...known, ...legacy({ devices, keys: [key("ana", [])], rules: [rule("1")] }) };
    const state = namespaceOf({ ...fixture, identity: known.identity, accessUnknown: "not known" });
    // The service accounts are not readable, so that the policy of the access mode is not known.
    const objects = new Map([...state.objects].filter(([kind]) => kind !== "ServiceAccount"));
    const live = state.with({ objects });
    expect(live.policy.identity).toBeUndefined();
    const unmanaged = live.watched();
    const { ofObjects } = driftMeaning({ live, plan: planOf(), drifted: [], unmanaged, home: TENANT });
    const effects = new Map(
      Array.from(ofObjects, ([{ definition, name }, sentences]) => [`${definition.name} ${name}`, sentences]),
    );
    for (const object of [
      "AccessPolicy p1",
      "PublicKey ana",
      "FirewallRule deny at priority 5",
      "DeviceTagAttachment prod on web-01",
    ])
      expect(effects.get(object), object).toEqual([UNKNOWN]);
    expect(effects.get("Member bob@example.com")).toEqual(["has the permissions of an observer", UNKNOWN]);
    expect(effects.get("ApiKey ci")).not.toContain(UNKNOWN);
  });
});
