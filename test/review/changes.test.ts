import { describe, expect, test } from "vitest";
import { accessLines } from "../../provider/privileges/accessLines.ts";
import { definitions, definitionsByName } from "../../provider/resources/index.ts";
import { memberChanges } from "../../provider/resources/member/index.ts";
import {
  deviceLockouts,
  memberLockouts,
  protectedGroup,
  type Seat,
  workloadLockouts,
} from "../../provider/review/guards/lockouts.ts";
import { missingPermissions } from "../../provider/review/guards/planProblems.ts";
import {
  type Access,
  type AccessRule,
  evaluateAccess,
  type NamespacePolicy,
} from "../../sdk/policy/index.ts";

const web1 = { uid: "1", name: "web-1", tags: ["prod"] };
const web2 = { uid: "2", name: "web-2", tags: ["prod"] };
const lab = { uid: "3", name: "lab", tags: [] };
const key = (name: string, username: string, filter: object) => ({
  fingerprint: `fingerprint of ${name}`,
  name,
  username,
  filter,
});
const rule = (id: string, more: Partial<AccessRule>): AccessRule => ({
  id,
  action: "deny",
  active: true,
  priority: 1,
  sourceIp: "",
  username: "",
  filter: {},
  ...more,
});
const policy = (more: Partial<NamespacePolicy>): NamespacePolicy => ({
  devices: [web1, web2, lab],
  keys: [],
  rules: [],
  ...more,
});

const evaluated = { logins: ["root", "deploy"], addresses: ["10.0.0.1", "192.0.2.1"] };
const uids = ["1", "2", "3"];
const over = (some: Partial<NamespacePolicy>) => evaluateAccess(policy(some), evaluated, uids);
const linesOf = (before: Partial<NamespacePolicy>, after: Partial<NamespacePolicy>) =>
  accessLines(over(before), over(after)).map(({ change, keys, logins, addresses, anyAddress, devices }) => [
    change,
    keys.map(({ name }) => name).join("+"),
    logins.join("+"),
    anyAddress ? "any" : addresses.join("+"),
    devices.join("+"),
  ]);

test("the workload that applies a change must keep its role and its conditions", () => {
  const claims = { repository: "acme/fleet", ref: "refs/heads/main" };
  const of = (more: object) => [
    { ...trustedWorkloadOf("administrator", claims), ...more },
    { ...trustedWorkloadOf("administrator", claims), id: "other" },
  ];
  const lockouts = (more: object, running: string | undefined = "w") =>
    workloadLockouts(of({}), of(more), running).map(({ code, message }) => [code, message]);
  const change = "the trusted workload deploy, which applies this change,";
  const altered = [["running-workload", `${change} gets another role, issuer, audience or other claims`]];
  expect(lockouts({ maxSessionMinutes: 30, name: "deploy" })).toEqual([]);
  expect(lockouts({ role: "operator" })).toEqual(altered);
  expect(lockouts({ claims: { ...claims, ref: "refs/heads/next" } })).toEqual(altered);
  expect(lockouts({ id: "gone" })).toEqual([["running-workload", `${change} is deleted`]]);
  expect(lockouts({ id: "gone" }, "another")).toEqual([]);
  const observer = [trustedWorkloadOf("observer", claims)];
  expect(workloadLockouts(observer, [], "w")).toEqual([]);
});

function trustedWorkloadOf(role: "observer" | "administrator", claims: Readonly<Record<string, string>>) {
  const [tenantId, createdAt] = ["t", "2026-11-28T00:00:00Z"];
  return {
    id: "w",
    tenantId,
    name: "deploy",
    issuer: "https://issuer.example.org",
    audience: "a",
    claims,
    role,
    maxSessionMinutes: 60,
    singleUse: false,
    createdBy: "u",
    createdAt,
    updatedAt: createdAt,
  };
}

describe("access changes", () => {
  const ana = key("ana", "", { tags: ["prod"] });
  const bob = key("bob", "", { tags: ["prod"] });

  test("merge logins and keys that gain the same access", () => {
    expect(linesOf({}, { keys: [ana, bob] })).toEqual([["gained", "ana+bob", "root+deploy", "any", "1+2"]]);
  });

  test("list lost access first, and list addresses separately if a rule distinguishes them", () => {
    const office = rule("1", { sourceIp: "^10\\.", filter: { hostname: "^web-1$" } });
    const carl = key("carl", "^root$", { hostname: "^lab$" });
    expect(linesOf({ keys: [ana] }, { keys: [ana, carl], rules: [office] })).toEqual([
      ["lost", "ana", "root+deploy", "10.0.0.1", "1"],
      ["gained", "carl", "root", "any", "3"],
    ]);
  });

  test("are empty if two policies are equivalent", () => {
    const same = { ...ana, filter: { hostname: "^web-" } };
    expect(linesOf({ keys: [ana] }, { keys: [same], rules: [rule("1", { active: false })] })).toEqual([]);
  });
});

const seat = (email: string, role: Seat["role"], status: Seat["status"] = "accepted"): Seat => ({
  id: `id of ${email}`,
  email,
  role,
  status,
});

describe("lockouts", () => {
  const owner = seat("owner", "owner");
  const codes = (before: readonly Seat[], after: readonly Seat[], user?: string) =>
    memberLockouts([owner, ...before], [owner, ...after], user && `id of ${user}`).map(({ code }) => code);

  test("are reported when the last administrator except the owner is removed or gets a lower role", () => {
    expect(codes([seat("ana", "administrator")], [])).toEqual(["last-administrator"]);
    expect(codes([seat("ana", "administrator")], [seat("ana", "operator")])).toEqual(["last-administrator"]);
  });

  test("are not reported when the owner runs the change, since the owner can fix it", () => {
    expect(codes([seat("ana", "administrator")], [], "owner")).toEqual([]);
  });

  test("are reported when the only other administrator has a pending invitation", () => {
    const pending = seat("bob", "administrator", "pending");
    expect(codes([seat("ana", "administrator")], [pending])).toEqual(["last-administrator"]);
  });

  test("are not reported when an administrator stays, or when there was no administrator before", () => {
    expect(codes([seat("ana", "administrator")], [seat("bob", "administrator")])).toEqual([]);
    expect(codes([seat("ana", "operator")], [])).toEqual([]);
  });

  test("are reported when the running user loses the administrator role", () => {
    const [ana, bob] = [seat("ana", "administrator"), seat("bob", "administrator")];
    expect(codes([ana, bob], [bob], "ana")).toEqual(["running-user"]);
    expect(codes([ana, bob], [seat("ana", "observer"), bob], "ana")).toEqual(["running-user"]);
    expect(codes([ana, bob], [ana], "ana")).toEqual([]);
    expect(codes([seat("ana", "observer"), bob], [bob], "ana")).toEqual([]);
  });

  const everyone = key("ana", "", {});
  test.each(["tag:prod", "prod", "web-2", "name:web-2"])("report an unreachable --protect %s", (label) => {
    const closed = { keys: [everyone], rules: [rule("1", { filter: { tags: ["prod"] } })] };
    const found = deviceLockouts(over({ keys: [everyone] }), over(closed), [protectedGroup(label)]);
    expect(found.map(({ code }) => code)).toEqual(["protected-devices"]);
    expect(found[0]?.message).toContain("web-2");
    expect(found[0]?.message).toContain(label);
  });

  test.each([
    [5, "web-1, web-2, web-3, web-4, web-5"],
    [7, "web-1, web-2, web-3, web-4, web-5 and 2 more"],
  ])("list at most five of %d unreachable devices", (count, words) => {
    const devices = Array.from({ length: count }, (_, at) => ({
      ...web1,
      uid: `${at}`,
      name: `web-${at + 1}`,
    }));
    const [before, after] = [[everyone], []].map((keys) =>
      evaluateAccess(
        policy({ devices, keys }),
        evaluated,
        devices.map(({ uid }) => uid),
      ),
    ) as [Access, Access];
    const [found] = deviceLockouts(before, after, [protectedGroup("prod")]);
    expect(found?.message).toBe(`no key can reach ${words} any longer (protected by --protect prod)`);
  });

  test("are not reported for a group that a key still reaches, that no key reached before, or that no longer exists", () => {
    const protect = [protectedGroup("prod")];
    const rootOnly = { keys: [everyone], rules: [rule("1", { username: "^deploy$" })] };
    expect(deviceLockouts(over({ keys: [everyone] }), over(rootOnly), protect)).toEqual([]);
    expect(deviceLockouts(over({}), over({}), protect)).toEqual([]);
    expect(deviceLockouts(over({ keys: [everyone] }), over({ devices: [lab] }), protect)).toEqual([]);
    const closed = { keys: [everyone], rules: [rule("1", {})] };
    expect(deviceLockouts(over({ keys: [everyone] }), over(closed), [protectedGroup("tag:lab")])).toEqual([]);
    // The group "rack:tag:lab" has a name that contains colons. The label "name:prod" matches only names, and
    // "tag:web-1" matches only tags.
    expect(protectedGroup("rack:tag:lab").has({ ...lab, tags: ["lab"] })).toBe(false);
    expect(protectedGroup("name:prod").has(web1)).toBe(false);
    expect(protectedGroup("tag:web-1").has(web1)).toBe(false);
    expect(["web-1", "name:web-1", "prod", "tag:prod"].every((text) => protectedGroup(text).has(web1))).toBe(
      true,
    );
  });
});

test("reports added and removed members, and changed roles", () => {
  const before = [seat("ana", "operator"), seat("bob", "observer")];
  const after = [seat("ana", "administrator"), seat("carl", "observer")];
  expect(memberChanges(before, after)).toEqual([
    { change: "role", email: "ana", from: "operator", to: "administrator" },
    { change: "removed", email: "bob", from: "observer" },
    { change: "added", email: "carl", to: "observer" },
  ]);
});

test("reports no keys without an owner as keys of a removed member whose id is not known", () => {
  const key = (name: string, ownerId: string) =>
    ({ definition: definitionsByName.PublicKey, id: name, name, state: { ownerId } }) as const;
  const removed = memberChanges([{ ...seat("ana", "observer"), id: "" }], [], [key("a", ""), key("b", "x")]);
  expect(removed).toEqual([{ change: "removed", email: "ana", from: "observer" }]);
});

describe("missing permissions", () => {
  const values = { inputs: {}, outputs: {} };
  type Op = "create" | "update" | "replace" | "delete" | "import" | "same";
  const step = (op: Op, name: string) => ({
    step: { op, name, urn: name, type: "", fields: [] as readonly { readonly path: string }[] },
    title: name,
    before: op === "create" ? undefined : values,
    after: op === "delete" ? undefined : values,
  });
  type PlannedStep = ReturnType<typeof step>;
  const planned = (kind: string, steps: readonly PlannedStep[]) => {
    const definition = definitions.find(({ name }) => name === kind);
    if (!definition) throw new Error(`there is no resource ${kind}`);
    return steps.map((one) => ({ ...one, definition }));
  };
  const operationsOf = (found: ReturnType<typeof missingPermissions>) =>
    found.map(({ operation, resources }) => [operation, ...resources]);
  const missing = (actor: Parameters<typeof missingPermissions>[0], kind: string, ...steps: PlannedStep[]) =>
    operationsOf(missingPermissions(actor, planned(kind, steps), []));

  test("are listed once for each operation, with the resources that need it", () => {
    const operator = { kind: "user", role: "operator" } as const;
    expect(
      missing(operator, "PublicKey", step("create", "a"), step("replace", "b"), step("same", "c")),
    ).toEqual([
      ["createPublicKey", "a", "b"],
      ["deletePublicKey", "b"],
    ]);
  });

  const observer = { kind: "user", role: "observer" } as const;
  const changed = (name: string, ...paths: readonly string[]) => {
    const { step: planned, ...rest } = step("update", name);
    return { ...rest, step: { ...planned, fields: paths.map((path) => ({ path })) } };
  };

  test("of an update include only the update operation, and only inputs that the request contains", () => {
    expect(missing(observer, "PublicKey", changed("a", "username"))).toEqual([["updatePublicKey", "a"]]);
    expect(missing(observer, "PublicKey", changed("a", "filter.tags"))).toEqual([["updatePublicKey", "a"]]);
    expect(missing(observer, "ApiKey", changed("a", "overlap", "rotateBefore"))).toEqual([]);
    expect(missing(observer, "ApiKey", changed("a", "overlap", "role"))).toEqual([["updateApiKey", "a"]]);
    expect(missing(observer, "Device", changed("a", "device", "onDestroy"))).toEqual([]);
    expect(missing(observer, "PublicKey", changed("a"))).toEqual([]);
  });

  test("are empty for imported and unchanged objects", () => {
    expect(missing(observer, "PublicKey", step("import", "a"), step("same", "b"))).toEqual([]);
    const imported = {
      ...changed("a", "username"),
      step: { ...changed("a", "username").step, op: "import" },
    };
    expect(missing(observer, "PublicKey", imported as PlannedStep)).toEqual([]);
  });

  test("of a deletion are reported only if the run deletes the device or object on the service", () => {
    const device = (onDestroy?: string) => {
      const before = { ...values, outputs: { ...(onDestroy !== undefined && { onDestroy }) } };
      return { ...step("delete", "a"), before } as PlannedStep;
    };
    expect(missing(observer, "Device", device("remove"))).toEqual([["deleteDevice", "a"]]);
    expect(missing(observer, "Device", device("keep"))).toEqual([]);
    expect(missing(observer, "Device", device())).toEqual([]);
    const kept = { ...step("delete", "a"), before: { ...values, retained: true } };
    expect(missing(observer, "PublicKey", kept)).toEqual([]);
  });

  test("are sorted by operation, and by resource", () => {
    const steps = ["c", "a", "b"].flatMap((name) => [step("delete", name), step("create", name)]);
    expect(missing(observer, "FirewallRule", ...steps)).toEqual([
      ["createFirewallRule", "a", "b", "c"],
      ["deleteFirewallRule", "a", "b", "c"],
    ]);
    const [first] = missingPermissions(observer, planned("FirewallRule", steps), []);
    expect(first?.reason).toBe(
      "permission denied: the role administrator is required, and the credential has the role observer (createFirewallRule)",
    );
  });

  test("of an API key include operations that only users may call", () => {
    const key = { kind: "apikey", role: "administrator" } as const;
    expect(missing(key, "Member", step("create", "bob"))).toEqual([["inviteMember", "bob"]]);
    expect(missing(key, "PublicKey", step("create", "a"))).toEqual([]);
  });

  test("are empty for an administrator, and for an unknown role", () => {
    for (const kind of ["PublicKey", "FirewallRule", "Member", "ApiKey", "DeviceTags", "Device"]) {
      expect(
        missing({ kind: "user", role: "administrator" }, kind, step("create", "a"), step("delete", "b")),
      ).toEqual([]);
    }
    expect(missing({ kind: "user", role: undefined }, "Member", step("create", "a"))).toEqual([]);
  });

  test("of a move to another namespace include only the operation in the evaluated namespace", () => {
    const operator = { kind: "user", role: "operator" } as const;
    const move = step("replace", "a");
    expect(missing(operator, "PublicKey", { ...move, after: undefined })).toEqual([["deletePublicKey", "a"]]);
    expect(missing(operator, "PublicKey", { ...move, before: undefined })).toEqual([
      ["createPublicKey", "a"],
    ]);
  });

  test("treat the creator of a new namespace as its owner, whatever role the creator has in the evaluated namespace", () => {
    const created = [
      ...planned("Namespace", [step("create", "n")]),
      ...planned("Member", [step("create", "m")]),
    ];
    expect(operationsOf(missingPermissions({ kind: "user", role: "observer" }, [], created))).toEqual([]);
    expect(operationsOf(missingPermissions({ kind: "apikey", role: undefined }, [], created))).toEqual([
      ["createNamespace", "n"],
      ["inviteMember", "m"],
    ]);
  });
});
