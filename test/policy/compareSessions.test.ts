import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type ComparisonInput,
  compareSessions,
  type Session,
} from "../../provider/verify/compareSessions.ts";
import {
  type AccessKey,
  type AccessPolicy,
  explain,
  type NamespacePolicy,
  type Principal,
} from "../../sdk/policy/index.ts";
import { ADDRESSES, policy as anyPolicy, LOGINS } from "./arbitraries.ts";

const START = "2026-12-01T12:00:00.000Z";
const DEVICES = [
  { uid: "web", name: "web-1", tags: ["prod"] },
  { uid: "db", name: "db-1", tags: [] },
];
const key = (fingerprint: string, more: Partial<AccessKey> = {}): AccessKey => ({
  fingerprint,
  name: fingerprint,
  username: "^root$",
  filter: { hostname: "^web" },
  ...more,
});
const rule = (action: "allow" | "deny", more: object = {}) => ({
  id: "7",
  action,
  active: true,
  priority: 1,
  sourceIp: "",
  username: "",
  filter: {},
  ...more,
});
const session = (more: object = {}): Session =>
  ({
    uid: "s1",
    deviceUid: "web",
    device: { name: "web-1" },
    username: "root",
    ipAddress: "192.0.2.7",
    startedAt: START,
    authenticated: true,
    type: "none",
    ...more,
  }) as Session;

interface World extends Partial<Omit<ComparisonInput, "sessions" | "estate" | "otherDevices">> {
  readonly policy?: Partial<NamespacePolicy>;
  readonly accessUnknown?: string;
  readonly others?: readonly { uid: string; name: string; status: string; tags: string[] }[];
}

/** Compares sessions with the policy of a namespace with two accepted devices. */
function compare(sessions: readonly Session[], world: World = {}) {
  const { policy: part = {}, accessUnknown, others = [], ...more } = world;
  const policy = { devices: DEVICES, keys: [], rules: [], ...part };
  const devices = policy.devices.map((device) => ({ ...device, status: "accepted" }));
  return compareSessions({
    estate: { policy, devices, accessUnknown } as unknown as ComparisonInput["estate"],
    otherDevices: others as unknown as ComparisonInput["otherDevices"],
    sessions,
    lastChange: undefined,
    storesKeys: true,
    unreadDevices: new Map(),
    ...more,
  });
}

/** Returns `holds`, the reason of a difference, or the sentence about a session that could not be compared. */
function verdict(of: Session, world: World = {}): string {
  const { differences, notEvaluated, compared, unauthenticated } = compare([of], world);
  const [difference] = differences;
  expect(compared.total + notEvaluated.length + unauthenticated).toBe(1);
  if (difference) return difference.reason;
  return notEvaluated[0] ?? (unauthenticated > 0 ? "unauthenticated" : "holds");
}

const byAna = session({ keyFingerprint: "ana" });

describe("a session with a key", () => {
  it("holds if this key admits the login and the firewall allows it", () => {
    expect(verdict(byAna, { policy: { keys: [key("ana")] } })).toBe("holds");
  });

  it("differs if only another key admits the login", () => {
    const keys = [key("ana", { username: "^deploy$" }), key("bob")];
    expect(verdict(byAna, { policy: { keys } })).toBe("the key ana does not allow the login name root");
    expect(verdict(byAna, { policy: { keys: [key("bob")] } })).toBe(
      "the namespace has no public key with this fingerprint",
    );
  });

  it("differs if the firewall denies the login", () => {
    const rules = [rule("deny", { sourceIp: "^192\\." })];
    expect(verdict(byAna, { policy: { keys: [key("ana")], rules } })).toBe(
      "the firewall rule 7 (deny, priority 1) denies the login",
    );
  });

  it("is compared although the device refused the login, because the policy had admitted it", () => {
    expect(verdict(session({ keyFingerprint: "ana", authenticated: false }))).toContain("no public key");
  });

  it("is reported with the name of the key", () => {
    const { differences } = compare([byAna], { policy: { keys: [key("ana", { username: "x" })] } });
    expect(differences).toEqual([
      {
        session: "s1",
        startedAt: START,
        login: "root",
        address: "192.0.2.7",
        device: { uid: "web", name: "web-1" },
        key: { fingerprint: "ana", name: "ana" },
        user: null,
        reason: "the key ana does not allow the login name root",
      },
    ]);
  });
});

describe("the policy is evaluated at the start of the session", () => {
  const ending = (expiresAt: string) => ({ policy: { keys: [key("ana", { expiresAt })] } });

  it("so an end that has passed since is no difference", () => {
    expect(verdict(byAna, ending("2026-12-01T12:00:01Z"))).toBe("holds");
  });

  it("so an end before the session is a difference", () => {
    expect(verdict(byAna, ending("2026-12-01T11:59:49Z"))).toContain("expired");
  });

  it("or shortly before, when the service decided the login", () => {
    expect(verdict(byAna, ending("2026-12-01T11:59:51Z"))).toBe("holds");
  });

  it("for equal logins before and after an end", () => {
    const before = session({ uid: "s0", keyFingerprint: "ana", startedAt: "2026-12-01T11:00:00Z" });
    const { differences, compared } = compare([byAna, before], ending("2026-12-01T11:30:00Z"));
    expect(compared.byKey).toBe(2);
    expect(differences.map((difference) => difference.session)).toEqual(["s1"]);
  });

  it("and a refused login right after a change may have been decided before the change", () => {
    const changed = (lastChange: string) => verdict(byAna, { lastChange: new Date(lastChange) });
    expect(changed("2026-12-01T11:59:51Z")).toMatch(/could not be compared.*before the last change/);
    expect(changed("2026-12-01T11:59:49Z")).toContain("no public key");
  });
});

describe("a session without a key on a server that stores keys", () => {
  it("is decided by the firewall alone", () => {
    const sessions = [session(), session({ uid: "s2", ipAddress: "198.51.100.1" })];
    const { compared, differences } = compare(sessions, {
      policy: { rules: [rule("deny", { sourceIp: "^198\\." })] },
    });
    expect(compared).toEqual({ total: 2, byKey: 0, byUser: 0, byFirewall: 2, weakly: 0 });
    expect(differences).toMatchObject([{ session: "s2", key: null }]);
  });

  it("is counted, but not compared, if its login did not succeed", () => {
    expect(verdict(session({ authenticated: false }))).toBe("unauthenticated");
  });
});

describe("a session on a server that stores no keys", () => {
  const other = (policy: World["policy"]) => ({ storesKeys: false, policy: policy ?? {} });

  it("is compared weakly: any key may admit the login", () => {
    const { compared, differences } = compare([session()], other({ keys: [key("ana")] }));
    expect([compared.weakly, differences]).toEqual([1, []]);
  });

  it("is not evaluated if no key admits the login, because a password may have authenticated it", () => {
    expect(verdict(session(), other({ keys: [key("ana", { username: "x" })] }))).toContain("password");
    const expired = key("ana", { expiresAt: "2026-12-01T11:00:00Z" });
    expect(verdict(session(), other({ keys: [expired] }))).toContain("password");
    expect(verdict(session(), other({ keys: [key("ana", { refusedType: "ssh-dss" })] }))).toContain(
      "password",
    );
    expect(verdict(session(), other({ keys: [key("ana", { owner: "u" })], members: [] }))).toContain(
      "password",
    );
  });

  it("differs if the firewall denies the login, with or without a key", () => {
    expect(verdict(session(), other({ keys: [key("ana")], rules: [rule("deny")] }))).toContain("denies");
  });
});

describe("a session that cannot be compared", () => {
  const policy = { keys: [key("ana", { filter: {} })] };

  it.each([
    ["its device no longer exists", { deviceUid: "gone" }, "the device no longer exists"],
    ["its address is not an IP address", { ipAddress: "localhost" }, "not an IP address"],
    ["its address is only valid on one host", { ipAddress: "fe80::1%eth0" }, "not an IP address"],
  ])("is listed: %s", (_title, more, reason) => {
    expect(verdict(session({ keyFingerprint: "ana", ...more }), { policy })).toContain(reason);
  });

  it("is listed if the access in the namespace is not known", () => {
    expect(verdict(byAna, { policy, accessUnknown: "the access is not known" })).toContain(
      "could not be compared: the access is not known",
    );
  });

  it("is listed with others that have the same reason", () => {
    const sessions = ["s3", "s2", "s1"].map((uid) => session({ uid, deviceUid: "gone" }));
    expect(compare(sessions).notEvaluated).toEqual([
      "3 sessions, of which the latest is s3 (root on web-1 from 192.0.2.7, 2026-12-01 12:00 UTC), could not be compared: the device no longer exists",
    ]);
  });

  it("is listed with the reason why its device could not be read", () => {
    const unreadDevices = new Map([["gone", "the device could not be read: permission denied"]]);
    const { notEvaluated } = compare([session({ deviceUid: "gone" })], { unreadDevices });
    expect(notEvaluated).toEqual([
      expect.stringMatching(/could not be compared: the device could not be read: permission denied$/),
    ]);
  });

  it("is listed if the server returns no device", () => {
    const { notEvaluated } = compare([session({ deviceUid: "gone", device: null })]);
    expect(notEvaluated).toEqual([expect.stringContaining("root on gone")]);
  });
});

describe("a device that the list of devices does not contain", () => {
  const policy = { keys: [key("ana", { filter: { tags: ["lab"] } })] };
  const of = session({ keyFingerprint: "ana", deviceUid: "box" });
  const device = (status: string) => [{ uid: "box", name: "box", status, tags: ["lab"] }];

  it("is compared if it is accepted", () => {
    expect(verdict(of, { policy, others: device("accepted") })).toBe("holds");
  });

  it("differs if it is not accepted", () => {
    expect(verdict(of, { policy, others: device("rejected") })).toBe("the device is not accepted");
  });

  it("no longer exists if it was removed", () => {
    expect(verdict(of, { policy, others: device("removed") })).toContain("no longer exists");
  });
});

it("compares an IPv4-mapped address as the firewall does", () => {
  const world = { policy: { rules: [rule("deny", { sourceIp: "^192\\.0\\.2\\.7$" })] } };
  expect(verdict(session({ ipAddress: "::ffff:192.0.2.7" }), world)).toContain("denies");
});

it("reports the start of a session in UTC, whatever offset the server returns", () => {
  const startedAt = "2026-12-01T14:00:00+02:00";
  const { differences } = compare([session({ startedAt })], { policy: { rules: [rule("deny")] } });
  expect(differences).toMatchObject([{ startedAt: START }]);
  const { notEvaluated } = compare([session({ startedAt, deviceUid: "gone" })]);
  expect(notEvaluated).toEqual([expect.stringContaining("2026-12-01 12:00 UTC")]);
});

describe("in identity mode", () => {
  const policy = (more: Partial<AccessPolicy> = {}): AccessPolicy => ({
    id: "p",
    name: "Ops",
    subject: { type: "user", value: "u" },
    filter: {},
    logins: ["root"],
    sourceIps: [],
    action: "allow",
    requireReauth: false,
    reauthPeriod: null,
    ...more,
  });
  const sshKey = (more: object = {}) => ({
    fingerprint: "SHA256:x",
    expiresAt: null,
    consumedAt: null,
    lastReauthAt: null,
    ...more,
  });
  const principal = (more: Partial<Principal> = {}): Principal => ({
    id: "u",
    name: "ana@example.com",
    kind: "user",
    role: "observer",
    keys: [sshKey()],
    ...more,
  });
  const world = (principals = [principal()], list = [policy()]): World => ({
    policy: { identity: { policies: list, principals } },
    storesKeys: false,
  });
  const byUser = session({ userId: "u", authenticated: false });

  it("holds if the policies allow the login of the user, also when the device refused it", () => {
    const { compared, differences } = compare([byUser], world());
    expect([compared.byUser, differences]).toEqual([1, []]);
  });

  it("holds after a re-authentication", () => {
    expect(verdict(byUser, world([principal()], [policy({ requireReauth: true })]))).toBe("holds");
  });

  it("differs if a policy denies the login, or none allows it", () => {
    expect(verdict(byUser, world([principal()], [policy(), policy({ action: "deny" })]))).toBe(
      "the access policy Ops denies the login",
    );
    expect(verdict(byUser, world([principal()], [policy({ logins: ["x"] })]))).toContain("no access policy");
  });

  it("differs if the user is not a member", () => {
    expect(verdict(session({ userId: "v" }), world())).toContain("not a member");
  });

  it("holds for the login that used a single-use key, and differs for a later login", () => {
    const used = (consumedAt: string) =>
      world([principal({ kind: "service account", role: "service", keys: [sshKey({ consumedAt })] })]);
    expect(verdict(byUser, used("2026-12-01T12:00:00.300Z"))).toBe("holds");
    expect(verdict(byUser, used("2026-12-01T11:00:00Z"))).toContain("used up");
  });

  it("is not evaluated if the user has deleted all SSH keys, unless the policies refuse the login", () => {
    expect(verdict(byUser, world([principal({ keys: [] })]))).toContain("may have been deleted");
    expect(verdict(byUser, world([principal({ keys: [] })], [policy({ logins: ["x"] })]))).toContain(
      "no access policy",
    );
  });

  it("compares a session without a user weakly", () => {
    const other = principal({ id: "v" });
    const { compared, differences } = compare([session()], world([other, principal()]));
    expect([compared.weakly, differences]).toEqual([1, []]);
    expect(verdict(session(), world([other]))).toBe("no user and no service account may log in");
  });

  it("evaluates no further user after one whose login the policies allow", () => {
    let evaluated = 0;
    const counted = (id: string): Principal => ({
      ...principal({ id }),
      get keys() {
        evaluated += 1;
        return [sshKey()];
      },
    });
    const list = [policy(), policy({ subject: { type: "user", value: "w" } })];
    // This session is not evaluated, so that only the reads of the preparation count.
    compare([session({ deviceUid: "gone" })], world([principal(), counted("w")], list));
    const prepared = evaluated;
    expect(verdict(session(), world([principal(), counted("w")], list))).toBe("holds");
    expect(evaluated).toBe(2 * prepared);
    expect(verdict(session(), world([principal({ id: "v" }), counted("w")], list))).toBe("holds");
    expect(evaluated).toBeGreaterThan(3 * prepared);
  });

  it("does not evaluate a session without a user if no login is allowed and one is not known", () => {
    const unknown = principal({ keys: [] });
    const other = principal({ id: "v" });
    expect(verdict(session(), world([unknown, other]))).toContain("may have been deleted");
    expect(verdict(session(), world([other, unknown]))).toContain("may have been deleted");
  });
});

it("agrees with the explanation of each login", { tags: ["long"] }, () => {
  fc.assert(
    fc.property(
      anyPolicy,
      fc.array(fc.tuple(fc.nat(), fc.nat(), fc.constantFrom(...LOGINS), fc.constantFrom(...ADDRESSES)), {
        maxLength: 20,
      }),
      (policy, logins) => {
        const { devices, keys } = policy;
        const of = (list: readonly unknown[], index: number) => index % Math.max(1, list.length);
        const sessions = logins.flatMap(([ofKey, ofDevice, username, ipAddress], index) => {
          const [one, device] = [keys[of(keys, ofKey)], devices[of(devices, ofDevice)]];
          if (!one || !device) return [];
          const { fingerprint: keyFingerprint } = one;
          return session({ uid: `${index}`, keyFingerprint, deviceUid: device.uid, username, ipAddress });
        });
        const { differences, notEvaluated } = compare(sessions, { policy });
        const refused = sessions.filter(
          ({ keyFingerprint = "", deviceUid, username: login, ipAddress: address, startedAt }) => {
            const question = { fingerprint: keyFingerprint, uid: deviceUid, login, address };
            return !explain(policy, { ...question, at: new Date(startedAt) }).allowed;
          },
        );
        expect(notEvaluated).toEqual([]);
        expect(differences.map((one) => one.session)).toEqual(refused.map(({ uid }) => uid));
      },
    ),
  );
});
