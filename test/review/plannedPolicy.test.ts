import { describe, expect, test } from "vitest";
import type { Plan, Shown, Step, StepOp } from "../../provider/dist/engine/index.js";
import { definitions } from "../../provider/dist/resources/index.js";
import type { Estate } from "../../provider/dist/review/estate.js";
import { kinds } from "../../provider/dist/review/planned/kinds.js";
import { plannedEstate } from "../../provider/dist/review/plannedPolicy.js";
import { parseSshPublicKey } from "../../sdk/dist/contract/index.js";
import type { AccessKey, AccessRule } from "../../sdk/dist/policy/index.js";
import { sshKeyLine } from "../provider/support/programs.ts";

type Values = Record<string, Shown>;
type Device = Estate["devices"][number];

const TENANT = "11111111-2222-4333-8444-555555555555";
const OTHER = "99999999-2222-4333-8444-555555555555";
const TIME = "2026-01-01T00:00:00.000Z";
const MAKER = "65f1a0000000000000000001";

const uidOf = (name: string) => Buffer.from(name).toString("hex").padEnd(64, "0").slice(0, 64);
const device = (name: string, tags: string[], more: Partial<Device> = {}): Device =>
  ({
    uid: uidOf(name),
    name,
    tags,
    status: "accepted",
    identity: { mac: `02:00:00:00:00:${name.slice(-2)}` },
    ...more,
  }) as Device;

const [lineA, lineB, lineC] = [sshKeyLine("a"), sshKeyLine("b"), sshKeyLine("c")];
const fingerprintOf = (line: string) => parseSshPublicKey(line).fingerprint;
const keyA: AccessKey = {
  fingerprint: fingerprintOf(lineA),
  name: "a",
  username: "^root$",
  filter: { tags: ["prod"] },
};
const keyB: AccessKey = {
  fingerprint: fingerprintOf(lineB),
  name: "b",
  username: ".*",
  filter: { hostname: "^web" },
};
const rule = (id: string, more: Partial<AccessRule> = {}): AccessRule => ({
  id,
  action: "deny",
  active: true,
  priority: 5,
  sourceIp: ".*",
  username: ".*",
  filter: { tags: ["prod"] },
  ...more,
});
const member = (name: string, role: string) =>
  ({ id: `user-${name}`, email: `${name}@example.com`, role, status: "accepted" }) as NonNullable<
    Estate["members"]
  >[number];
const apiKey = (name: string, role: string) =>
  ({ name, role, createdAt: `made ${name}`, createdBy: MAKER }) as NonNullable<Estate["apiKeys"]>[number];

const devices = [
  device("web-01", ["prod"]),
  device("web-02", ["prod", "web"]),
  device("lab-03", ["lab"]),
  device("new-04", [], { status: "pending" }),
];
const estate: Estate = {
  tenant: TENANT,
  name: "fleet",
  devices,
  policy: {
    devices: devices
      .filter(({ status }) => status === "accepted")
      .map(({ uid, name, tags }) => ({ uid, name, tags })),
    keys: [keyA, keyB],
    rules: [rule("1"), rule("2", { priority: 9, action: "allow" })],
  },
  members: [member("owner", "owner"), member("bob", "observer")],
  apiKeys: [apiKey("ci", "observer")],
  seen: { sessions: 0, logins: [], addresses: [] },
  unknown: [],
};

interface Sides {
  readonly before?: { inputs?: Values; outputs: Values };
  readonly after?: Values;
  readonly id?: string;
}

const urnOf = (kind: string, name: string) =>
  `urn:pulumi:test::project::pulumi-nodejs:dynamic/gatehouse:${kind}::${name}`;

function step(op: StepOp, kind: string, name: string, { before, after, id }: Sides): Step {
  const was = before && { inputs: before.inputs ?? {}, outputs: { tenant: TENANT, ...before.outputs } };
  return {
    op,
    urn: urnOf(kind, name),
    type: `pulumi-nodejs:dynamic/gatehouse:${kind}`,
    name,
    fields: [],
    ...(id !== undefined && { id }),
    ...(was && { before: was }),
    // Of what is unchanged the outputs stay; of the rest a preview knows the inputs alone.
    ...(after && {
      after: {
        inputs: after,
        outputs: op === "same" || op === "import" ? (was?.outputs ?? { tenant: TENANT, ...after }) : after,
      },
    }),
  };
}

const planOf = (...steps: Step[]) => ({ steps }) as unknown as Plan;
const plan = (...steps: Step[]) => plannedEstate(estate, planOf(...steps));
const tagsOf = (planned: ReturnType<typeof plan>, name: string) =>
  planned.policy.devices.find((one) => one.name === name)?.tags;

const keyId = `${TENANT}/${keyA.fingerprint}`;
const keyState = { before: { outputs: { fingerprint: keyA.fingerprint, name: "a" } }, id: keyId };
const keyInputs = { name: "a", data: lineA, username: "^ana$", filter: { hostname: ".*" } };
const ruleInputs = {
  action: "allow",
  active: true,
  priority: 7,
  sourceIp: "^10\\.",
  username: ".*",
  filter: { hostname: ".*" },
};
const ruleState = { before: { outputs: { ruleId: "1" } }, id: `${TENANT}/1` };
const on = (name: string) => ({ uid: uidOf(name), deviceName: name });

test("without a step, or with unchanged ones, the namespace stays as it really is", () => {
  const same = step("same", "PublicKey", "a", {
    ...keyState,
    after: { ...keyInputs, username: "^drifted$" },
  });
  for (const planned of [plan(), plan(same)]) {
    expect(planned.policy).toEqual(estate.policy);
    expect(planned).toMatchObject({ unknown: [], notes: [], twins: [] });
    expect(planned.members?.map(({ email }) => email)).toEqual(["owner@example.com", "bob@example.com"]);
  }
});

test("a plan without values is refused", () => {
  expect(() => plan(step("same", "PublicKey", "a", {}))).toThrow(/preview with values/);
});

test("resources of other packages, components and the stack are none of it", () => {
  const stack = { ...step("update", "PublicKey", "a", {}), type: "pulumi:pulumi:Stack" };
  expect(plan(stack).policy).toEqual(estate.policy);
});

describe("PublicKey", () => {
  test("create: last, under the fingerprint of its data", () => {
    const { policy } = plan(
      step("create", "PublicKey", "c", { after: { ...keyInputs, data: `${lineC} comment` } }),
    );
    expect(policy.keys).toEqual([
      keyA,
      keyB,
      { fingerprint: fingerprintOf(lineC), name: "a", username: "^ana$", filter: { hostname: ".*" } },
    ]);
  });

  test("update: in its place", () => {
    const { policy } = plan(step("update", "PublicKey", "a", { ...keyState, after: keyInputs }));
    expect(policy.keys).toEqual([{ ...keyA, username: "^ana$", filter: { hostname: ".*" } }, keyB]);
  });

  test("replace: the old one goes", () => {
    const after = { ...keyInputs, data: lineC };
    const { policy } = plan(step("replace", "PublicKey", "a", { ...keyState, after }));
    expect(policy.keys.map(({ fingerprint }) => fingerprint)).toEqual([
      keyB.fingerprint,
      fingerprintOf(lineC),
    ]);
  });

  test("delete, but not what another resource takes over", () => {
    const gone = step("delete", "PublicKey", "a", keyState);
    expect(plan(gone).policy.keys).toEqual([keyB]);
    const taken = step("create", "PublicKey", "heir", { after: { ...keyInputs, adopt: "overwrite" } });
    expect(plan(gone, taken).policy.keys).toMatchObject([
      { fingerprint: keyA.fingerprint, username: "^ana$" },
      keyB,
    ]);
  });

  test("import: as it is, and managed", () => {
    const planned = plan(
      step("import", "PublicKey", "a", { id: keyId, after: { ...keyInputs, username: "^root$" } }),
    );
    expect(planned.policy).toEqual(estate.policy);
    expect(planned.managed).toEqual([
      { kind: "PublicKey", id: keyA.fingerprint, urn: urnOf("PublicKey", "a") },
    ]);
  });

  test.each([
    ["create", {}, "[unknown]", "it is left out here"],
    ["update", keyState, "[unknown]", "what it has stays as it is here"],
    ["replace", keyState, "[secret]", "what it has stays as it is here"],
  ] as const)("%s with a filter that nobody can tell", (op, state, hidden, rest) => {
    const after = { ...keyInputs, filter: { tags: ["prod", hidden] } };
    const planned = plan(step(op, "PublicKey", "a", { ...state, after }));
    expect(planned.policy).toEqual(estate.policy);
    expect(planned.unknown).toEqual([
      `PublicKey "a": its filter is secret or not known before the change is made; ${rest}`,
    ]);
  });

  test("a name that is not known yet decides nothing", () => {
    const planned = plan(
      step("create", "PublicKey", "c", { after: { ...keyInputs, data: lineC, name: "[unknown]" } }),
    );
    expect(planned.policy.keys.at(-1)).toMatchObject({ name: "c", fingerprint: fingerprintOf(lineC) });
    expect(planned.unknown).toEqual([]);
  });

  test("an update of one that is gone", () => {
    const state = {
      before: { outputs: { fingerprint: fingerprintOf(lineC) } },
      id: `${TENANT}/${fingerprintOf(lineC)}`,
    };
    const planned = plan(step("update", "PublicKey", "c", { ...state, after: keyInputs }));
    expect(planned.policy).toEqual(estate.policy);
    expect(planned.unknown.join()).toContain('PublicKey "c": it changes an object that is gone');
    expect(planned.managed).toEqual([]);
  });
});

describe("FirewallRule", () => {
  test("create: last, in the order of the plan, named by the resource", () => {
    const { policy } = plan(
      step("create", "FirewallRule", "x", { after: ruleInputs }),
      step("create", "FirewallRule", "y", { after: { ...ruleInputs, priority: 8 } }),
      { ...step("create", "FirewallRule", "x", { after: ruleInputs }), urn: "urn of another x" },
    );
    expect(policy.rules.map(({ id }) => id)).toEqual(["1", "2", "x (new)", "y (new)", "x (new, 2)"]);
    expect(policy.rules[2]).toEqual({ ...rule("x (new)"), ...ruleInputs });
  });

  test("update keeps its place, delete and replace do not", () => {
    const update = plan(step("update", "FirewallRule", "x", { ...ruleState, after: ruleInputs }));
    expect(update.policy.rules.map(({ id, priority }) => [id, priority])).toEqual([
      ["1", 7],
      ["2", 9],
    ]);
    expect(plan(step("delete", "FirewallRule", "x", ruleState)).policy.rules.map(({ id }) => id)).toEqual([
      "2",
    ]);
    const replace = plan(step("replace", "FirewallRule", "x", { ...ruleState, after: ruleInputs }));
    expect(replace.policy.rules.map(({ id }) => id)).toEqual(["2", "x (new)"]);
  });

  test("one that takes over an equal rule makes none", () => {
    const { id: _id, ...equal } = rule("1");
    const after = { ...equal, filter: { tags: ["prod"] } };
    const adopted = plan(step("create", "FirewallRule", "x", { after: { ...after, adopt: true } }));
    expect(adopted.policy).toEqual(estate.policy);
    expect(adopted.managed).toEqual([{ kind: "FirewallRule", id: "1", urn: urnOf("FirewallRule", "x") }]);
    expect(plan(step("create", "FirewallRule", "x", { after })).policy.rules).toHaveLength(3);
  });

  test("nobody can tell which of two new ones comes last", () => {
    const planned = plan(
      step("create", "FirewallRule", "x", { after: ruleInputs }),
      step("create", "FirewallRule", "y", { after: { ...ruleInputs, action: "deny" } }),
      step("create", "FirewallRule", "z", { after: { ...ruleInputs, priority: 8 } }),
    );
    expect(planned.unknown).toHaveLength(1);
    expect(planned.unknown[0]).toMatch(/"x \(new\)" and "y \(new\)" have one priority/);
  });

  test("with a pattern that nobody can tell the old one stays", () => {
    const after = { ...ruleInputs, sourceIp: "[unknown]", username: "[secret]" };
    const planned = plan(step("update", "FirewallRule", "x", { ...ruleState, after }));
    expect(planned.policy).toEqual(estate.policy);
    expect(planned.unknown[0]).toMatch(
      /^FirewallRule "x": its sourceIp and username are secret or not known/,
    );
  });
});

describe("DeviceTags", () => {
  const state = {
    before: { outputs: { ...on("web-02"), tags: ["prod", "web"] } },
    id: `${TENANT}/${uidOf("web-02")}`,
  };

  test.each([uidOf("web-01"), "WEB-01", "02-00-00-00-00-01"])(
    "create sets all tags of the device %s",
    (selector) => {
      const planned = plan(
        step("create", "DeviceTags", "t", { after: { device: selector, tags: ["a1b", "c2d"] } }),
      );
      expect(tagsOf(planned, "web-01")).toEqual(["a1b", "c2d"]);
    },
  );

  test("update, replace and delete", () => {
    const update = plan(
      step("update", "DeviceTags", "t", { ...state, after: { device: "web-02", tags: ["new"] } }),
    );
    expect(tagsOf(update, "web-02")).toEqual(["new"]);
    const moved = plan(
      step("replace", "DeviceTags", "t", { ...state, after: { device: "lab-03", tags: ["web"] } }),
    );
    expect([tagsOf(moved, "web-02"), tagsOf(moved, "lab-03")]).toEqual([[], ["web"]]);
    // Of what the state does not know nothing is taken away.
    const part = { before: { outputs: { ...on("web-02"), tags: ["web"] } }, id: state.id };
    expect(tagsOf(plan(step("delete", "DeviceTags", "t", part)), "web-02")).toEqual(["prod"]);
  });

  test("tags that attachments take over stay, and the other way round", () => {
    const attach = { device: "web-02", tag: "web", adopt: true };
    const over = plan(
      step("delete", "DeviceTags", "t", state),
      step("create", "DeviceTagAttachment", "w", { after: attach }),
    );
    expect(tagsOf(over, "web-02")).toEqual(["web"]);
    const back = plan(
      step("delete", "DeviceTagAttachment", "w", {
        before: { outputs: on("web-02") },
        id: `${TENANT}/${uidOf("web-02")}/web`,
      }),
      step("create", "DeviceTags", "t", { after: { device: "web-02", tags: ["web"] } }),
    );
    expect(tagsOf(back, "web-02")).toEqual(["web"]);
  });

  test("a device that does not exist, or that nobody can tell", () => {
    const nobody = plan(step("create", "DeviceTags", "t", { after: { device: "edge-99", tags: ["edge"] } }));
    expect(nobody.unknown).toEqual(['DeviceTags "t": there is no device "edge-99" yet; it is left out here']);
    const hidden = plan(
      step("replace", "DeviceTags", "t", { ...state, after: { device: "[unknown]", tags: ["edge"] } }),
    );
    expect(hidden.unknown[0]).toMatch(/^DeviceTags "t": its device is secret or not known/);
    for (const { policy } of [nobody, hidden]) expect(policy).toEqual(estate.policy);
    const gone = { before: { outputs: on("gone-05") }, id: `${TENANT}/${uidOf("gone-05")}` };
    const late = plan(
      step("update", "DeviceTags", "t", { ...gone, after: { device: "gone-05", tags: ["edge"] } }),
    );
    expect(late.unknown[0]).toContain(`its device ${uidOf("gone-05")} is gone`);
  });
});

describe("DeviceTagAttachment", () => {
  const state = { before: { outputs: on("web-02") }, id: `${TENANT}/${uidOf("web-02")}/web` };

  test("create adds, delete takes away, replace does both, update nothing", () => {
    const made = plan(
      step("create", "DeviceTagAttachment", "x", { after: { device: "web-01", tag: "edge" } }),
    );
    expect(tagsOf(made, "web-01")).toEqual(["prod", "edge"]);
    expect(tagsOf(plan(step("delete", "DeviceTagAttachment", "x", state)), "web-02")).toEqual(["prod"]);
    const other = plan(
      step("replace", "DeviceTagAttachment", "x", { ...state, after: { device: "web-02", tag: "edge" } }),
    );
    expect(tagsOf(other, "web-02")).toEqual(["prod", "edge"]);
    const renamed = plan(
      step("update", "DeviceTagAttachment", "x", {
        ...state,
        after: { device: uidOf("web-02"), tag: "web" },
      }),
    );
    expect(renamed.policy).toEqual(estate.policy);
  });
});

describe("Tag", () => {
  const rename = (name: string, from: string, to: string) =>
    step("update", "Tag", name, {
      before: { outputs: { name: from } },
      id: `${TENANT}/${from}`,
      after: { name: to },
    });

  test("a renamed one is renamed on devices and in filters, also of what nobody declares", () => {
    const { policy } = plan(rename("t", "prod", "live"));
    expect(policy.devices.map(({ tags }) => tags)).toEqual([["live"], ["live", "web"], ["lab"]]);
    expect(policy.keys.map(({ filter }) => filter)).toEqual([{ tags: ["live"] }, { hostname: "^web" }]);
    expect(policy.rules.map(({ filter }) => filter)).toEqual([{ tags: ["live"] }, { tags: ["live"] }]);
  });

  test("names may pass from one to another", () => {
    const planned = plan(rename("x", "prod", "lab"), rename("y", "lab", "old"));
    expect(planned.policy.devices.map(({ tags }) => tags)).toEqual([["lab"], ["lab", "web"], ["old"]]);
  });

  test("declaring one, and no longer doing so, change nothing", () => {
    const state = { before: { outputs: { name: "prod" } }, id: `${TENANT}/prod` };
    expect(plan(step("create", "Tag", "t", { after: { name: "prod" } })).policy).toEqual(estate.policy);
    expect(plan(step("delete", "Tag", "t", state)).policy).toEqual(estate.policy);
    const hidden = plan(step("update", "Tag", "t", { ...state, after: { name: "[unknown]" } }));
    expect(hidden.policy).toEqual(estate.policy);
    expect(hidden.unknown[0]).toMatch(/^Tag "t": its name is secret or not known/);
  });
});

describe("Device", () => {
  const state = (onDestroy: string) => ({
    before: { outputs: { uid: uidOf("web-01"), name: "web-01", onDestroy } },
    id: `${TENANT}/${uidOf("web-01")}`,
  });
  const names = (planned: ReturnType<typeof plan>) => planned.policy.devices.map(({ name }) => name);

  test("a name and an acceptance", () => {
    const named = plan(
      step("update", "Device", "d", { ...state("keep"), after: { device: "web-01", name: "Gate" } }),
    );
    expect(names(named)).toEqual(["gate", "web-02", "lab-03"]);
    const accepted = plan(
      step("create", "Device", "d", { after: { device: "new-04", status: "accepted", name: "edge-04" } }),
      step("create", "DeviceTags", "t", { after: { device: "edge-04", tags: ["edge"] } }),
    );
    expect(accepted.policy.devices.at(-1)).toEqual({ uid: uidOf("new-04"), name: "edge-04", tags: ["edge"] });
    expect(accepted.unknown).toEqual([]);
  });

  test("a rejection, of a waiting one alone", () => {
    const rejected = plan(step("create", "Device", "d", { after: { device: "new-04", status: "rejected" } }));
    expect(rejected).toMatchObject({ policy: estate.policy, unknown: [] });
    const refused = plan(
      step("update", "Device", "d", { ...state("keep"), after: { device: "web-01", status: "rejected" } }),
    );
    expect(refused.policy).toEqual(estate.policy);
    expect(refused.unknown[0]).toContain("which the service refuses");
  });

  test("the same machine, accepted with a new key, takes the place of its former self", () => {
    const twin = device("new-04", [], { status: "pending", identity: { mac: "02:00:00:00:00:01" } });
    const swapped = { ...estate, devices: [...devices.slice(0, 3), twin] };
    const after = { device: twin.uid, status: "accepted" };
    const { policy } = plannedEstate(swapped, planOf(step("create", "Device", "d", { after })));
    expect(policy.devices.filter(({ name }) => name === "web-01").map(({ uid }) => uid)).toEqual([twin.uid]);
    expect(policy.devices).toHaveLength(3);
  });

  test("removed only where destroying it means that", () => {
    expect(names(plan(step("delete", "Device", "d", state("keep"))))).toEqual(["web-01", "web-02", "lab-03"]);
    expect(names(plan(step("delete", "Device", "d", state("remove"))))).toEqual(["web-02", "lab-03"]);
    const heir = step("create", "Device", "heir", { after: { device: "web-01" } });
    expect(names(plan(step("delete", "Device", "d", state("remove")), heir))).toEqual([
      "web-01",
      "web-02",
      "lab-03",
    ]);
  });
});

describe("Member", () => {
  const state = { before: { outputs: { userId: "user-bob" } }, id: `${TENANT}/user-bob` };
  const seats = (planned: ReturnType<typeof plan>) =>
    planned.members?.map(({ email, role, status }) => `${email.split("@")[0]} ${role} ${status}`);

  test("create, update, replace, delete", () => {
    const owner = "owner owner accepted";
    const ana = { email: "ana@example.com", role: "operator" };
    expect(seats(plan(step("create", "Member", "ana", { after: ana })))).toEqual([
      owner,
      "bob observer accepted",
      "ana operator pending",
    ]);
    const promoted = { email: "bob@example.com", role: "administrator" };
    expect(seats(plan(step("update", "Member", "bob", { ...state, after: promoted })))).toEqual([
      owner,
      "bob administrator accepted",
    ]);
    expect(seats(plan(step("replace", "Member", "bob", { ...state, after: ana })))).toEqual([
      owner,
      "ana operator pending",
    ]);
    expect(seats(plan(step("delete", "Member", "bob", state)))).toEqual([owner]);
    expect(
      seats(
        plan(step("delete", "Member", "bob", state), step("create", "Member", "heir", { after: promoted })),
      ),
    ).toEqual([owner, "bob administrator accepted"]);
  });

  test("with an address that nobody can tell", () => {
    const planned = plan(step("create", "Member", "x", { after: { email: "[secret]", role: "operator" } }));
    expect(planned.members).toHaveLength(2);
    expect(planned.unknown[0]).toMatch(/^Member "x": its email is secret or not known/);
  });
});

describe("ApiKey", () => {
  const state = {
    before: { outputs: { name: "ci", role: "observer", createdAt: "made ci", createdBy: MAKER } },
    id: `${TENANT}/ci`,
  };
  const ends = (planned: ReturnType<typeof plan>) =>
    planned.apiKeys?.map(({ name, role, was }) => [name, role, was]);

  test("create, update, replace, delete", () => {
    expect(ends(plan(step("create", "ApiKey", "x", { after: { validDays: 30 } })))).toEqual([
      ["ci", "observer", "ci"],
      ["x (new)", undefined, undefined],
    ]);
    const after = { name: "deploy", role: "operator", validDays: 30, overlap: 0 };
    expect(ends(plan(step("update", "ApiKey", "ci", { ...state, after })))).toEqual([
      ["deploy", "operator", "ci"],
    ]);
    expect(ends(plan(step("replace", "ApiKey", "ci", { ...state, after })))).toEqual([
      ["deploy", "operator", undefined],
    ]);
    expect(ends(plan(step("delete", "ApiKey", "ci", state)))).toEqual([]);
  });

  test("a replaced one goes on for its overlap, under another name", () => {
    const after = { name: "ci", role: "observer", validDays: 30, overlap: 7 };
    expect(ends(plan(step("replace", "ApiKey", "ci", { ...state, after })))).toEqual([
      ["ci (replaced)", "observer", "ci"],
      ["ci", "observer", undefined],
    ]);
  });

  test("keys that were replaced earlier go with it, or when their time is over", () => {
    const previous = [{ tenant: TENANT, name: "ci", createdAt: "made ci", createdBy: MAKER, until: TIME }];
    const before = {
      outputs: { name: "ci2", role: "observer", createdAt: "made ci2", createdBy: MAKER, previous },
    };
    const two = { ...estate, apiKeys: [apiKey("ci", "observer"), apiKey("ci2", "observer")] };
    for (const [op, left] of [
      ["update", ["ci2"]],
      ["delete", []],
    ] as const) {
      const after = op === "update" ? { after: { name: "ci2", validDays: 30 } } : {};
      const planned = plannedEstate(
        two,
        planOf(step(op, "ApiKey", "ci", { before, id: `${TENANT}/ci`, ...after })),
      );
      expect(planned.apiKeys?.map(({ name }) => name)).toEqual(left);
    }
  });

  test("is managed under the name that it has today", () => {
    const renamed = { ...estate, apiKeys: [{ ...apiKey("ci", "observer"), name: "by-hand" }] } as Estate;
    const planned = plannedEstate(
      renamed,
      planOf(step("same", "ApiKey", "ci", { ...state, after: { validDays: 30 } })),
    );
    expect(planned.managed).toEqual([{ kind: "ApiKey", id: "by-hand", urn: urnOf("ApiKey", "ci") }]);
  });
});

describe("namespaces", () => {
  test("a deleted one is empty", () => {
    const planned = plan(
      step("delete", "Namespace", "n", { before: { outputs: { tenant: TENANT } }, id: TENANT }),
    );
    expect(planned.policy).toEqual({ devices: [], keys: [], rules: [] });
    expect([planned.members, planned.apiKeys]).toEqual([[], []]);
    expect(planned.managed).toEqual([{ kind: "Namespace", id: TENANT, urn: urnOf("Namespace", "n") }]);
  });

  test("one that is made, and what is for it, are no part of this one", () => {
    const planned = plan(
      step("create", "Namespace", "n", { after: { name: "trials" } }),
      step("create", "PublicKey", "k", { after: { ...keyInputs, data: lineC, tenant: "[unknown]" } }),
    );
    expect(planned.policy).toEqual(estate.policy);
    expect(planned.notes).toHaveLength(2);
    expect(planned.notes.join()).toMatch(/Namespace "n" makes a namespace.*PublicKey "k" is for a namespace/);
    expect(planned.unknown).toEqual([]);
  });

  test("other namespaces' resources are left alone, also where a program names none", () => {
    const theirs = step("create", "PublicKey", "k", { after: { ...keyInputs, data: lineC, tenant: OTHER } });
    expect(plan(theirs)).toMatchObject({ policy: estate.policy, unknown: [], notes: [] });
    const unnamed = planOf(step("create", "PublicKey", "k", { after: { ...keyInputs, data: lineC } }));
    expect(plannedEstate(estate, unnamed, { home: OTHER }).policy).toEqual(estate.policy);
    expect(plannedEstate(estate, unnamed).policy.keys).toHaveLength(3);
    // A state's own namespace holds, whatever the program leaves out.
    const state = { before: { outputs: { ...keyState.before.outputs, tenant: OTHER } }, id: keyId };
    expect(plan(step("update", "PublicKey", "a", { ...state, after: keyInputs })).policy).toEqual(
      estate.policy,
    );
  });

  test("what moves to another namespace goes from this one", () => {
    const moved = step("replace", "PublicKey", "a", { ...keyState, after: { ...keyInputs, tenant: OTHER } });
    expect(plan(moved).policy.keys).toEqual([keyB]);
    const unclear = plan(
      step("replace", "PublicKey", "a", { ...keyState, after: { ...keyInputs, tenant: "[unknown]" } }),
    );
    expect(unclear.policy).toEqual(estate.policy);
    expect(unclear.unknown[0]).toMatch(/^PublicKey "a": its namespace is not known/);
  });
});

describe("twins", () => {
  const twins = (...steps: Step[]) =>
    plan(...steps).twins.map(({ urns }) => urns.map((urn) => urn.split("::").at(-1)));
  const tagged = (name: string, selector: string) =>
    step("create", "DeviceTags", name, { after: { device: selector, tags: ["prod"] } });
  const attached = (name: string, selector: string, tag: string) =>
    step("create", "DeviceTagAttachment", name, { after: { device: selector, tag } });

  test("two keys of one fingerprint, two members of one address, two names of one API key", () => {
    const keys = ["x", "y"].map((name, at) =>
      step("create", "PublicKey", name, { after: { ...keyInputs, data: `${lineC} ${at}` } }),
    );
    expect(twins(...keys)).toEqual([["x", "y"]]);
    expect(plan(...keys).twins[0]?.object).toBe(`key ${fingerprintOf(lineC)}`);
    const members = ["Bob@example.com", "bob@example.com"].map((email) =>
      step("create", "Member", email, { after: { email, role: "operator" } }),
    );
    expect(twins(...members)).toEqual([["Bob@example.com", "bob@example.com"]]);
    const ends = ["x", "y"].map((name) =>
      step("create", "ApiKey", name, { after: { name: "deploy", validDays: 30 } }),
    );
    expect(twins(...ends)).toEqual([["x", "y"]]);
  });

  test("a device by two selectors", () => {
    expect(twins(tagged("x", "web-01"), tagged("y", "02:00:00:00:00:01"))).toEqual([["x", "y"]]);
    expect(plan(tagged("x", "web-01"), tagged("y", uidOf("web-01"))).twins[0]?.object).toBe(
      "tags of the device web-01",
    );
    const state = {
      before: { outputs: { uid: uidOf("web-01"), name: "web-01" } },
      id: `${TENANT}/${uidOf("web-01")}`,
    };
    const known = step("same", "Device", "x", { ...state, after: { device: "web-01" } });
    expect(twins(known, step("create", "Device", "y", { after: { device: uidOf("web-01") } }))).toEqual([
      ["x", "y"],
    ]);
  });

  test("DeviceTags beside a DeviceTagAttachment; not two attachments of different tags", () => {
    expect(twins(tagged("x", "web-01"), attached("y", uidOf("web-01"), "lab"))).toEqual([["x", "y"]]);
    expect(twins(attached("x", "web-01", "lab"), attached("y", uidOf("web-01"), "edge"))).toEqual([]);
    expect(twins(attached("x", "web-01", "lab"), attached("y", uidOf("web-01"), "lab"))).toEqual([
      ["x", "y"],
    ]);
  });

  test("one rule imported twice; not a resource that goes, nor one of another namespace", () => {
    const imported = (name: string) =>
      step("import", "FirewallRule", name, { id: `${TENANT}/1`, after: ruleInputs });
    expect(twins(imported("x"), imported("y"))).toEqual([["x", "y"]]);
    const heir = step("create", "PublicKey", "heir", { after: { ...keyInputs, adopt: true } });
    expect(twins(step("delete", "PublicKey", "a", keyState), heir)).toEqual([]);
    const theirs = step("create", "PublicKey", "k", { after: { ...keyInputs, tenant: OTHER } });
    expect(twins(theirs, heir)).toEqual([]);
  });
});

test("every resource is planned for", () => {
  expect([...kinds.keys()].sort()).toEqual(definitions.map(({ name }) => name).sort());
});
