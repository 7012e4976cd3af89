import { describe, expect, test } from "vitest";
import { definitions } from "../../provider/resources/index.ts";
import { accessLines } from "../../provider/review/accessLines.ts";
import {
  deviceLockouts,
  memberLockouts,
  protectedGroup,
  type Seat,
} from "../../provider/review/guards/lockouts.ts";
import { incapabilities } from "../../provider/review/guards/planProblems.ts";
import { memberChanges } from "../../provider/review/reviewNamespace.ts";
import { Access, type AccessPolicy, type AccessRule } from "../../sdk/policy/index.ts";

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
  ...{ id, action: "deny", active: true, priority: 1, sourceIp: "", username: "", filter: {} },
  ...more,
});
const policy = (more: Partial<AccessPolicy>): AccessPolicy => ({
  ...{ devices: [web1, web2, lab], keys: [], rules: [] },
  ...more,
});

const domain = { logins: ["root", "deploy"], addresses: ["10.0.0.1", "192.0.2.1"] };
const uids = ["1", "2", "3"];
const over = (some: Partial<AccessPolicy>) => new Access(policy(some), domain, uids);
const linesOf = (before: Partial<AccessPolicy>, after: Partial<AccessPolicy>) =>
  accessLines(over(before), over(after)).map(({ change, keys, logins, addresses, anyAddress, devices }) => [
    change,
    keys.map(({ name }) => name).join("+"),
    logins.join("+"),
    anyAddress ? "any" : addresses.join("+"),
    devices.join("+"),
  ]);

describe("the access that a change gives and takes", () => {
  const ana = key("ana", "", { tags: ["prod"] });
  const bob = key("bob", "", { tags: ["prod"] });

  test("names logins and keys together that gain the same", () => {
    expect(linesOf({}, { keys: [ana, bob] })).toEqual([["gained", "ana+bob", "root+deploy", "any", "1+2"]]);
  });

  test("puts losses first, and tells addresses apart that a rule tells apart", () => {
    const office = rule("1", { sourceIp: "^10\\.", filter: { hostname: "^web-1$" } });
    const carl = key("carl", "^root$", { hostname: "^lab$" });
    expect(linesOf({ keys: [ana] }, { keys: [ana, carl], rules: [office] })).toEqual([
      ["lost", "ana", "root+deploy", "10.0.0.1", "1"],
      ["gained", "carl", "root", "any", "3"],
    ]);
  });

  test("is nothing where two policies say the same in other words", () => {
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

describe("lock-outs", () => {
  const owner = seat("owner", "owner");
  const codes = (before: readonly Seat[], after: readonly Seat[], user?: string) =>
    memberLockouts([owner, ...before], [owner, ...after], user && `id of ${user}`).map(({ code }) => code);

  test("the last administrator beside the owner goes, or becomes less", () => {
    expect(codes([seat("ana", "administrator")], [])).toEqual(["last-administrator"]);
    expect(codes([seat("ana", "administrator")], [seat("ana", "operator")])).toEqual(["last-administrator"]);
  });

  test("it is none where the owner runs it, who can put it right", () => {
    expect(codes([seat("ana", "administrator")], [], "owner")).toEqual([]);
  });

  test("an invitation administers nothing yet", () => {
    const pending = seat("bob", "administrator", "pending");
    expect(codes([seat("ana", "administrator")], [pending])).toEqual(["last-administrator"]);
  });

  test("no lock-out where one stays, or where there was none", () => {
    expect(codes([seat("ana", "administrator")], [seat("bob", "administrator")])).toEqual([]);
    expect(codes([seat("ana", "operator")], [])).toEqual([]);
  });

  test("the user who runs it loses the administration", () => {
    const [ana, bob] = [seat("ana", "administrator"), seat("bob", "administrator")];
    expect(codes([ana, bob], [bob], "ana")).toEqual(["running-user"]);
    expect(codes([ana, bob], [seat("ana", "observer"), bob], "ana")).toEqual(["running-user"]);
    expect(codes([ana, bob], [ana], "ana")).toEqual([]);
    expect(codes([seat("ana", "observer"), bob], [bob], "ana")).toEqual([]);
  });

  const everyone = key("ana", "", {});
  test.each(["tag:prod", "prod", "web-2", "name:web-2"])("nobody reaches --protect %s any more", (label) => {
    const closed = { keys: [everyone], rules: [rule("1", { filter: { tags: ["prod"] } })] };
    const found = deviceLockouts(over({ keys: [everyone] }), over(closed), [protectedGroup(label)]);
    expect(found.map(({ code }) => code)).toEqual(["protected-devices"]);
    expect(found[0]?.message).toContain("web-2");
    expect(found[0]?.message).toContain(label);
  });

  test.each([
    [5, "web-1, web-2, web-3, web-4, web-5"],
    [7, "web-1, web-2, web-3, web-4, web-5 and 2 more"],
  ])("of %d devices that nobody reaches five are named", (count, words) => {
    const devices = Array.from({ length: count }, (_, at) => ({
      ...web1,
      uid: `${at}`,
      name: `web-${at + 1}`,
    }));
    const [before, after] = [[everyone], []].map(
      (keys) =>
        new Access(
          policy({ devices, keys }),
          domain,
          devices.map(({ uid }) => uid),
        ),
    ) as [Access, Access];
    const [found] = deviceLockouts(before, after, [protectedGroup("prod")]);
    expect(found?.message).toBe(`no key can reach ${words} any longer (protected by --protect prod)`);
  });

  test("a group that somebody still reaches, or nobody reached, or that is gone, is none", () => {
    const protect = [protectedGroup("prod")];
    const rootOnly = { keys: [everyone], rules: [rule("1", { username: "^deploy$" })] };
    expect(deviceLockouts(over({ keys: [everyone] }), over(rootOnly), protect)).toEqual([]);
    expect(deviceLockouts(over({}), over({}), protect)).toEqual([]);
    expect(deviceLockouts(over({ keys: [everyone] }), over({ devices: [lab] }), protect)).toEqual([]);
    const closed = { keys: [everyone], rules: [rule("1", {})] };
    expect(deviceLockouts(over({ keys: [everyone] }), over(closed), [protectedGroup("tag:lab")])).toEqual([]);
    // A colon that belongs to the name, and a word that is a name alone.
    expect(protectedGroup("rack:tag:lab").has({ ...lab, tags: ["lab"] })).toBe(false);
    expect(protectedGroup("name:prod").has(web1)).toBe(false);
    expect(protectedGroup("tag:web-1").has(web1)).toBe(false);
    expect(["web-1", "name:web-1", "prod", "tag:prod"].every((text) => protectedGroup(text).has(web1))).toBe(
      true,
    );
  });
});

test("members who come, go, and get another role", () => {
  const before = [seat("ana", "operator"), seat("bob", "observer")];
  const after = [seat("ana", "administrator"), seat("carl", "observer")];
  expect(memberChanges(before, after)).toEqual([
    { change: "role", email: "ana", from: "operator", to: "administrator" },
    { change: "removed", email: "bob", from: "observer" },
    { change: "added", email: "carl", to: "observer" },
  ]);
});

describe("what the credential may not do", () => {
  const values = { inputs: {}, outputs: {} };
  type Op = "create" | "update" | "replace" | "delete" | "import" | "same";
  const step = (op: Op, name: string) => ({
    step: { ...{ op, name, urn: name, type: "" }, fields: [] as readonly { readonly path: string }[] },
    title: name,
    before: op === "create" ? undefined : values,
    after: op === "delete" ? undefined : values,
  });
  type Asked = ReturnType<typeof step>;
  const planned = (kind: string, steps: readonly Asked[]) => {
    const definition = definitions.find(({ name }) => name === kind);
    if (!definition) throw new Error(`there is no resource ${kind}`);
    return steps.map((one) => ({ ...one, definition }));
  };
  const told = (found: ReturnType<typeof incapabilities>) =>
    found.map(({ operation, resources }) => [operation, ...resources]);
  const asked = (actor: Parameters<typeof incapabilities>[0], kind: string, ...steps: Asked[]) =>
    told(incapabilities(actor, planned(kind, steps), []));

  test("is said once for each operation, with the resources that need it", () => {
    const operator = { kind: "user", role: "operator" } as const;
    expect(
      asked(operator, "PublicKey", step("create", "a"), step("replace", "b"), step("same", "c")),
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

  test("of an update is that of the update alone, and of inputs that are sent", () => {
    expect(asked(observer, "PublicKey", changed("a", "username"))).toEqual([["updatePublicKey", "a"]]);
    expect(asked(observer, "PublicKey", changed("a", "filter.tags"))).toEqual([["updatePublicKey", "a"]]);
    expect(asked(observer, "ApiKey", changed("a", "overlap", "rotateBefore"))).toEqual([]);
    expect(asked(observer, "ApiKey", changed("a", "overlap", "role"))).toEqual([["updateApiKey", "a"]]);
    expect(asked(observer, "Device", changed("a", "device", "onDestroy"))).toEqual([]);
    expect(asked(observer, "PublicKey", changed("a"))).toEqual([]);
  });

  test("is none for objects that a plan reads into the state, or leaves as they are", () => {
    expect(asked(observer, "PublicKey", step("import", "a"), step("same", "b"))).toEqual([]);
    const imported = {
      ...changed("a", "username"),
      step: { ...changed("a", "username").step, op: "import" },
    };
    expect(asked(observer, "PublicKey", imported as Asked)).toEqual([]);
  });

  test("of a device's deletion counts where the device is removed, and of other objects where they are not kept", () => {
    const device = (onDestroy?: string) => {
      const before = { ...values, outputs: { ...(onDestroy !== undefined && { onDestroy }) } };
      return { ...step("delete", "a"), before } as Asked;
    };
    expect(asked(observer, "Device", device("remove"))).toEqual([["deleteDevice", "a"]]);
    expect(asked(observer, "Device", device("keep"))).toEqual([]);
    expect(asked(observer, "Device", device())).toEqual([]);
    const kept = { ...step("delete", "a"), before: { ...values, retained: true } };
    expect(asked(observer, "PublicKey", kept)).toEqual([]);
  });

  test("is listed by operation, with the resources in order", () => {
    const steps = ["c", "a", "b"].flatMap((name) => [step("delete", name), step("create", name)]);
    expect(asked(observer, "FirewallRule", ...steps)).toEqual([
      ["createFirewallRule", "a", "b", "c"],
      ["deleteFirewallRule", "a", "b", "c"],
    ]);
    const [first] = incapabilities(observer, planned("FirewallRule", steps), []);
    expect(first?.reason).toBe(
      "permission denied: the role administrator is required, and the credential has the role observer (createFirewallRule)",
    );
  });

  test("an API key cannot do what users alone may", () => {
    const key = { kind: "apikey", role: "administrator" } as const;
    expect(asked(key, "Member", step("create", "bob"))).toEqual([["inviteMember", "bob"]]);
    expect(asked(key, "PublicKey", step("create", "a"))).toEqual([]);
  });

  test("an administrator may all of it; of an unknown role nothing is said", () => {
    for (const kind of ["PublicKey", "FirewallRule", "Member", "ApiKey", "DeviceTags", "Device"]) {
      expect(
        asked({ kind: "user", role: "administrator" }, kind, step("create", "a"), step("delete", "b")),
      ).toEqual([]);
    }
    expect(asked({ kind: "user", role: undefined }, "Member", step("create", "a"))).toEqual([]);
  });

  test("of an object that moves to another namespace, only what is done in this one", () => {
    const operator = { kind: "user", role: "operator" } as const;
    const move = step("replace", "a");
    expect(asked(operator, "PublicKey", { ...move, after: undefined })).toEqual([["deletePublicKey", "a"]]);
    expect(asked(operator, "PublicKey", { ...move, before: undefined })).toEqual([["createPublicKey", "a"]]);
  });

  test("a namespace that is made has its maker for an owner, whatever he is here", () => {
    const made = [
      ...planned("Namespace", [step("create", "n")]),
      ...planned("Member", [step("create", "m")]),
    ];
    expect(told(incapabilities({ kind: "user", role: "observer" }, [], made))).toEqual([]);
    expect(told(incapabilities({ kind: "apikey", role: undefined }, [], made))).toEqual([
      ["createNamespace", "n"],
      ["inviteMember", "m"],
    ]);
  });
});
