import { describe, expect, test } from "vitest";
import {
  deviceLockouts,
  memberLockouts,
  policyLockouts,
  protectedGroup,
  type Seat,
  workloadLockouts,
} from "../../../provider/review/guards/lockouts.ts";
import { type AccessPolicy, evaluateAccess, type NamespacePolicy } from "../../../sdk/policy/index.ts";
import { workload } from "../support/planned.ts";

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
  ])("is not replaced by %s", (_, bob) => {
    expect(codes([ana, bob], [bob])).toEqual(["last-administrator"]);
  });

  test("is no invited administrator: the end of an invitation locks out no administrator", () => {
    expect(codes([seat("bob", "administrator", "pending")], [])).toEqual([]);
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
    workloadLockouts([running], after, id).map(({ code }) => code);

  test.each<[string, Partial<typeof workload>]>([
    ["role", { role: "operator" }],
    ["issuer", { issuer: "https://gitlab.example.org" }],
    ["audience", { audience: "another" }],
    ["claims", { claims: { repository: "acme/fleet" } }],
  ])("is locked out by a change of its %s", (_, change) => {
    expect(lockouts([{ ...running, ...change }])).toEqual(["running-workload"]);
  });

  test("is locked out by its deletion, even if another workload has the same rules", () => {
    expect(lockouts([{ ...running, id: "another" }])).toEqual(["running-workload"]);
  });

  test("is not locked out by a change of its name or sessions, and other workloads are not guarded", () => {
    expect(lockouts([{ ...running, name: "renamed", maxSessionMinutes: 5, singleUse: false }])).toEqual([]);
    expect(lockouts([], "another")).toEqual([]);
    expect(workloadLockouts([running], [], undefined)).toEqual([]);
  });
});

const web = { uid: "1", name: "web-1", tags: ["prod"] };
const lab = { uid: "2", name: "lab", tags: [] };
const EVALUATED = { logins: ["root"], addresses: ["10.0.0.1"] };
const accessOf = (policy: Partial<NamespacePolicy>) =>
  evaluateAccess({ devices: [web, lab], keys: [], rules: [], ...policy }, EVALUATED);

describe("an access policy", () => {
  const principal = { id: "ana", name: "ana@example.com", kind: "user", role: "owner", keys: [] } as const;
  const allowing: AccessPolicy = {
    id: "all",
    name: "all",
    subject: { type: "all-members", value: "" },
    filter: {},
    logins: ["*"],
    sourceIps: [],
    action: "allow",
    requireReauth: false,
    reauthPeriod: null,
  };
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
    const key = { fingerprint: "f", name: "ana", username: "", filter: {} };
    expect(policyLockouts(accessOf({ keys: [key] }), accessOf({}))).toEqual([]);
  });
});

describe("protected devices", () => {
  const key = (name: string, hostname: string) => ({
    fingerprint: name,
    name,
    username: "",
    filter: { hostname },
  });
  const both = [key("ana", "^web-1$"), key("bob", "^web-1$")];
  const lost = (before: NamespacePolicy["keys"], after: NamespacePolicy["keys"], ...labels: string[]) =>
    deviceLockouts(accessOf({ keys: before }), accessOf({ keys: after }), labels.map(protectedGroup)).map(
      ({ code, message }) => `${code}: ${message}`,
    );

  test("are locked out if no key reaches them any longer, and not while one key reaches them", () => {
    expect(lost(both, both.slice(1), "tag:prod")).toEqual([]);
    expect(lost(both, [], "tag:prod", "name:lab")).toEqual([
      "protected-devices: no key can reach web-1 any longer (protected by --protect tag:prod)",
    ]);
  });

  test("are only the devices of the groups", () => {
    expect(lost(both, [], "name:lab")).toEqual([]);
    expect(lost(both, [])).toEqual([]);
  });
});
