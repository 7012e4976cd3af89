import { describe, expect, test } from "vitest";
import {
  deviceLockouts,
  memberLockouts,
  policyLockouts,
  protectedGroup,
  type Seat,
  workloadLockouts,
} from "../../../provider/review/guards/lockouts.ts";
import {
  type AccessPolicy,
  type AccessRule,
  evaluateAccess,
  type NamespacePolicy,
} from "../../../sdk/policy/index.ts";
import { workload } from "../support/planned.ts";
import { accessDevice, accessKey, accessPolicy, accessRule, user } from "../support/policyObjects.ts";

const seat = (name: string, role: Seat["role"], status: Seat["status"] = "accepted"): Seat => ({
  id: name,
  email: `${name}@example.com`,
  role,
  status,
});
const OWNER = seat("owner", "owner");
const codes = (before: readonly Seat[], after: readonly Seat[], runningUser?: string) =>
  memberLockouts([OWNER, ...before], [OWNER, ...after], runningUser).map(({ code }) => code);

describe("the last administrator", () => {
  const ana = seat("ana", "administrator");

  test.each([
    ["an invited administrator", seat("bob", "administrator", "pending")],
    ["an operator", seat("bob", "operator")],
    ["an observer", seat("bob", "observer")],
    ["the same user with a lower role", seat("ana", "operator")],
  ])("is not replaced by %s", (_, bob) => {
    expect(codes([ana, bob], [bob])).toEqual(["last-administrator"]);
  });

  test("is no invited administrator and no operator: their removal locks out no administrator", () => {
    expect(codes([seat("bob", "administrator", "pending")], [])).toEqual([]);
    expect(codes([seat("bob", "operator")], [])).toEqual([]);
  });

  test("may be replaced by another administrator", () => {
    expect(codes([ana], [seat("bob", "administrator")])).toEqual([]);
  });

  test("may leave only if the owner applies the change, and not if an API key or an operator applies it", () => {
    expect(codes([ana], [], "owner")).toEqual([]);
    expect(codes([ana], [], undefined)).toEqual(["last-administrator"]);
    expect(codes([ana, seat("bob", "operator")], [seat("bob", "operator")], "bob")).toEqual([
      "last-administrator",
    ]);
  });
});

describe("the user who applies a change", () => {
  const [ana, bob] = [seat("ana", "administrator"), seat("bob", "administrator")];

  test.each<[string, readonly Seat[]]>([
    ["leaves the namespace", []],
    ["gets a lower role", [seat("ana", "operator")]],
    ["becomes an invited administrator", [seat("ana", "administrator", "pending")]],
  ])("is locked out if the user %s", (_, own) => {
    expect(codes([ana, bob], [...own, bob], "ana")).toEqual(["running-user"]);
    expect(codes([ana, bob], [...own, bob], "bob")).toEqual([]);
  });

  test("is not locked out without the administrator role", () => {
    expect(codes([seat("ana", "observer"), bob], [bob], "ana")).toEqual([]);
  });

  test("may be an owner whose membership the change removes", () => {
    const without = memberLockouts([OWNER, ana], [ana], "owner");
    expect(without.map(({ code, message }) => [code, message])).toEqual([
      ["running-user", "owner@example.com, who applies this change, is no longer a member"],
    ]);
  });
});

describe("the workload that applies a change", () => {
  const running = { ...workload, role: "administrator" } as const;
  const lockouts = (after: readonly (typeof workload)[], id: string | undefined = running.id) =>
    workloadLockouts([running, { ...running, id: "other" }], after, id).map(
      ({ code, message }) => `${code}: ${message}`,
    );
  const LOCKED_OUT = "running-workload: the trusted workload deploy, which applies this change,";

  test.each<[string, Partial<typeof workload>]>([
    ["role", { role: "operator" }],
    ["issuer", { issuer: "https://gitlab.example.org" }],
    ["audience", { audience: "another" }],
    ["claims", { claims: { repository: "acme/fleet" } }],
  ])("is locked out by a change of its %s", (_, change) => {
    expect(lockouts([{ ...running, ...change }])).toEqual([
      `${LOCKED_OUT} gets another role, issuer, audience or other claims`,
    ]);
  });

  test("is locked out by its deletion, even if another workload has the same rules", () => {
    expect(lockouts([{ ...running, id: "another" }])).toEqual([`${LOCKED_OUT} is deleted`]);
  });

  test("is not locked out by a change of its name or sessions, and other workloads are not guarded", () => {
    expect(lockouts([{ ...running, name: "renamed", maxSessionMinutes: 5, singleUse: false }])).toEqual([]);
    expect(lockouts([], "another")).toEqual([]);
    expect(workloadLockouts([running], [], undefined)).toEqual([]);
    const observer = { ...running, role: "observer" } as const;
    expect(workloadLockouts([observer], [], observer.id)).toEqual([]);
  });
});

const [web1, web2, lab] = [accessDevice("web-1", "prod"), accessDevice("web-2", "prod"), accessDevice("lab")];
const EVALUATED = { logins: ["root", "deploy"], addresses: ["10.0.0.1"] };
const accessOf = (policy: Partial<NamespacePolicy>) =>
  evaluateAccess({ devices: [web1, web2, lab], keys: [], rules: [], ...policy }, EVALUATED);

describe("an access policy", () => {
  const principal = user("ana", { role: "owner", keys: [] });
  const allowing = accessPolicy("all", { logins: ["*"] });
  const withPolicies = (...policies: readonly AccessPolicy[]) =>
    accessOf({ identity: { principals: [principal], policies } });
  const denying: AccessPolicy = { ...allowing, id: "none", action: "deny" };

  test("may not be deleted if it is the last one, since the namespace then denies every login", () => {
    expect(policyLockouts(withPolicies(allowing), withPolicies()).map(({ code }) => code)).toEqual([
      "no-access-policy",
    ]);
  });

  test("may be deleted if another one remains, or if it allows no login", () => {
    expect(policyLockouts(withPolicies(allowing, denying), withPolicies(denying))).toEqual([]);
    expect(policyLockouts(withPolicies(denying), withPolicies())).toEqual([]);
  });

  test("is not needed in a namespace whose keys and rules decide", () => {
    expect(policyLockouts(accessOf({ keys: [accessKey("ana")] }), accessOf({}))).toEqual([]);
  });
});

describe("protected devices", () => {
  const ana = accessKey("ana");
  const lockouts = (before: Partial<NamespacePolicy>, after: Partial<NamespacePolicy>, ...labels: string[]) =>
    deviceLockouts(accessOf(before), accessOf(after), labels.map(protectedGroup)).map(
      ({ code, message }) => `${code}: ${message}`,
    );
  const closed = (filter: AccessRule["filter"] = {}) => ({
    keys: [ana],
    rules: [accessRule("1", { filter })],
  });

  test.each([
    ["tag:prod", "web-1, web-2"],
    ["prod", "web-1, web-2"],
    ["web-2", "web-2"],
    ["name:web-2", "web-2"],
  ])("are locked out if no key reaches them any longer: --protect %s", (label, devices) => {
    expect(lockouts({ keys: [ana] }, closed({ tags: ["prod"] }), label)).toEqual([
      `protected-devices: no key can reach ${devices} any longer (protected by --protect ${label})`,
    ]);
  });

  test("are not locked out while one key reaches them with one login", () => {
    const keys = ["ana", "bob"].map((name) => accessKey(name));
    expect(lockouts({ keys }, { keys: keys.slice(1) }, "prod")).toEqual([]);
    const rootOnly = { keys: [ana], rules: [accessRule("1", { username: "^deploy$" })] };
    expect(lockouts({ keys: [ana] }, rootOnly, "prod")).toEqual([]);
  });

  test("are not locked out if no key reached them before, or if they no longer exist", () => {
    expect(lockouts({}, {}, "prod")).toEqual([]);
    expect(lockouts({ keys: [ana] }, { keys: [ana], devices: [lab] }, "prod")).toEqual([]);
  });

  test("are only the devices of the groups", () => {
    expect(lockouts({ keys: [ana] }, closed({ tags: ["prod"] }), "name:lab")).toEqual([]);
    expect(lockouts({ keys: [ana] }, closed())).toEqual([]);
    expect(lockouts({ keys: [ana] }, closed(), "tag:lab")).toEqual([]);
  });

  test.each([
    ["web-1", web1, true],
    ["name:web-1", web1, true],
    ["prod", web1, true],
    ["tag:prod", web1, true],
    ["name:prod", web1, false],
    ["tag:web-1", web1, false],
    // The name of this group contains colons.
    ["rack:tag:lab", accessDevice("lab", "lab"), false],
  ])("of the group %s: %j is protected: %s", (label, device, isProtected) => {
    expect(protectedGroup(label).has(device)).toBe(isProtected);
  });

  test.each([
    [5, "web-1, web-2, web-3, web-4, web-5"],
    [7, "web-1, web-2, web-3, web-4, web-5 and 2 more"],
  ])("a message lists at most five of %d unreachable devices", (count, listed) => {
    const devices = Array.from({ length: count }, (_, at) => accessDevice(`web-${at + 1}`, "prod"));
    expect(lockouts({ devices, keys: [ana] }, { devices }, "prod")).toEqual([
      `protected-devices: no key can reach ${listed} any longer (protected by --protect prod)`,
    ]);
  });
});
