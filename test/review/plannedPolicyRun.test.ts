import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openStack, type Stack } from "../../provider/engine/index.ts";
import type { NamespaceState } from "../../provider/namespace/namespaceState.ts";
import { readNamespace } from "../../provider/namespace/readNamespace.ts";
import { apiKeysOf } from "../../provider/resources/apiKey/index.ts";
import { membersOf } from "../../provider/resources/member/index.ts";
import { Connection } from "../../provider/service/connection.ts";
import type { NamespacePolicy } from "../../sdk/policy/index.ts";
import { sshKeyLine } from "../provider/support/programs.ts";
import { createKey } from "../support/fleet.ts";
import { engines } from "../support/gatehouse.ts";
import { ownDefinitions } from "../support/ownDefinitions.ts";
import { firewallRule } from "../support/policy.ts";
import { sharedFleet } from "../support/sharedFleet.ts";
import { listsOf, namespaceAfter } from "./support/namespace.ts";

const PROGRAM = fileURLToPath(new URL("../endToEnd/fixtures/commonjs", import.meta.url));

type Resource = { type: string; args: Record<string, unknown> };
type Program = Record<string, Resource>;

const [fixed, changing, old, fresh, going, coming] = Array.from({ length: 6 }, (_, at) =>
  sshKeyLine(`${at}`),
);
const anywhere = { hostname: ".*" };
const key = (data: string | undefined, args: Record<string, unknown>): Resource => ({
  type: "PublicKey",
  args: { name: "key", data, username: "^root$", filter: anywhere, ...args },
});
const rule = (priority: number, args: Record<string, unknown> = {}): Resource =>
  firewallRule("deny", priority, { sourceIp: "^203\\.", ...args });
const apiKey = (name: string, args: Record<string, unknown> = {}): Resource => ({
  type: "ApiKey",
  args: { name, role: "observer", validDays: 30, ...args },
});
const member = (name: string, role: string): Resource => ({
  type: "Member",
  args: { email: `${name}@example.com`, role },
});
const workload = (name: string, role: string, ref = "refs/heads/main"): Resource => ({
  type: "TrustedWorkload",
  args: {
    name,
    role,
    issuer: "https://token.actions.githubusercontent.com",
    audience: "gatehouse",
    claims: { repository: "acme/fleet", ref },
  },
});
const zone = { $ref: "zone.name" };

const before: Program = {
  zone: { type: "Tag", args: { name: "zone1" } },
  unused: { type: "Tag", args: { name: "unused1" } },
  keptTags: { type: "DeviceTags", args: { device: "web-01", tags: [zone, "web"] } },
  movedTags: { type: "DeviceTags", args: { device: "web-02", tags: ["prod", "moved"] } },
  deletedTags: { type: "DeviceTags", args: { device: "web-03", tags: ["prod", "deleted"] } },
  splitTags: { type: "DeviceTags", args: { device: "web-04", tags: ["split1", "split2"] } },
  keptTag: { type: "DeviceTagAttachment", args: { device: "lab-01", tag: "kept" } },
  otherTag: { type: "DeviceTagAttachment", args: { device: "lab-01", tag: "other" } },
  zoneTag: { type: "DeviceTagAttachment", args: { device: "lab-02", tag: zone } },
  deletedTag: { type: "DeviceTagAttachment", args: { device: "lab-02", tag: "deleted" } },
  gate: { type: "Device", args: { device: "02:00:00:00:bb:01", name: "gate" } },
  retired: { type: "Device", args: { device: "retired-01", onDestroy: "remove" } },
  left: { type: "Device", args: { device: "left-01" } },
  sameKey: key(fixed, { name: "same", filter: { tags: [zone] } }),
  changedKey: key(changing, { name: "changed" }),
  replacedKey: key(old, { name: "replaced" }),
  deletedKey: key(going, { name: "deleted" }),
  sameRule: rule(1),
  // Each rule refers to the previous one, since engines create independent rules concurrently, in any order.
  changedRule: rule(2, {
    username: { $ref: "sameRule.username" },
    filter: { tags: [zone, "prod"] },
  }),
  deletedRule: rule(3, { username: { $ref: "changedRule.username" } }),
  bob: member("bob", "observer"),
  carla: member("carla", "operator"),
  changedCi: apiKey("ci-changed"),
  replacedCi: apiKey("ci-replaced"),
  overlappedCi: apiKey("ci-before"),
  deletedCi: apiKey("ci-deleted"),
  changedWorkload: workload("changed", "observer"),
  deletedWorkload: workload("deleted", "operator"),
};

const {
  deletedTags: _1,
  splitTags: _2,
  deletedTag: _3,
  retired: _4,
  left: _5,
  deletedKey: _6,
  deletedRule: _7,
  ...kept
} = before;
const { carla: _8, deletedCi: _9, deletedWorkload: _10, ...rest } = kept;
const after: Program = {
  ...rest,
  zone: { type: "Tag", args: { name: "zone2" } },
  movedTags: { type: "DeviceTags", args: { device: "web-05", tags: ["prod", "moved"] } },
  splitTag: { type: "DeviceTagAttachment", args: { device: "web-04", tag: "split1", adopt: true } },
  newTags: { type: "DeviceTags", args: { device: "gate-b", tags: ["edge", zone] } },
  otherTag: { type: "DeviceTagAttachment", args: { device: "lab-01", tag: "another" } },
  gate: { type: "Device", args: { device: "02:00:00:00:bb:01", name: "gate-b" } },
  fresh: { type: "Device", args: { device: "fresh-01", name: "fresh-a", status: "accepted" } },
  refused: { type: "Device", args: { device: "refused-01", status: "rejected" } },
  changedKey: key(changing, { name: "changed", username: "^ana$", filter: { tags: ["prod", zone] } }),
  replacedKey: key(fresh, { name: "replaced" }),
  newKey: key(coming, { name: "new", filter: { tags: [zone] } }),
  changedRule: rule(7, { action: "allow", filter: { hostname: "^web-" } }),
  newRule: rule(4, { username: "^ops$", filter: { tags: ["prod"] } }),
  // Refers to the username of newRule. This rule depends on newRule, so the engine creates it later.
  laterRule: rule(4, { action: "allow", username: { $ref: "newRule.username" }, active: false }),
  adoptedRule: rule(9, { adopt: true }),
  bob: member("bob", "administrator"),
  ana: member("ana", "operator"),
  changedCi: apiKey("ci-renamed", { role: "operator", validDays: 30 }),
  replacedCi: apiKey("ci-replaced", { role: "observer", validDays: 60 }),
  overlappedCi: apiKey("ci-after", { role: "operator", validDays: 60, overlap: 7 }),
  newCi: apiKey("ci-new"),
  changedWorkload: workload("renamed", "operator", "refs/tags/v1"),
  newWorkload: workload("new", "administrator"),
  trials: { type: "Namespace", args: { name: "trials" } },
  trialsKey: key(coming, { tenant: { $ref: "trials.tenant" } }),
};
// The plan contains the name of the device after the rename.
after.newTags = { type: "DeviceTags", args: { ...after.newTags?.args, device: { $ref: "gate.name" } } };

it("the programs before and after the change contain every resource type", () => {
  const kinds = (program: Program) => Object.values(program).map(({ type }) => type);
  expect([...new Set([...kinds(before), ...kinds(after)])].sort()).toEqual(
    ownDefinitions.map(({ name }) => name).sort(),
  );
});

/** Sorts a policy for comparison. The ids of new rules are not known in advance. */
function comparable({ devices, keys, rules }: NamespacePolicy, isNew: (id: string) => boolean) {
  const by = (name: string) => (left: object, right: object) =>
    String(left[name as never]).localeCompare(String(right[name as never]));
  const sorted = <T extends { filter: { tags?: readonly string[]; hostname?: string } }>(object: T) => ({
    ...object,
    filter: object.filter.tags ? { tags: object.filter.tags.toSorted() } : object.filter,
  });
  return {
    devices: devices.map((device) => ({ ...device, tags: device.tags.toSorted() })).sort(by("uid")),
    keys: keys.map(sorted).sort(by("fingerprint")),
    rules: rules.map(sorted).map((entry) => ({ ...entry, id: isNew(entry.id) ? "new" : entry.id })),
  };
}

describe.each(engines)("a plan with the $label", ({ engine, available }) => {
  const fleet = sharedFleet(["ana", "bob", "carla"]);
  let folder: string;
  let stack: Stack;

  const open = (program: Program): Promise<Stack> =>
    openStack({
      folder: PROGRAM,
      stack: `planned-${engine}`,
      engine,
      env: {
        ...process.env,
        ...fleet.env,
        PULUMI_BACKEND_URL: `file://${folder}`,
        PULUMI_CONFIG_PASSPHRASE: "correct horse battery staple",
        POLICY: JSON.stringify(program),
      },
    });
  const namespaceNow = async () =>
    readNamespace(new Connection(fleet.client, { defaultTenant: fleet.tenant }));

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "gatehouse-state-"));
    for (const name of ["web-01", "web-02", "web-03", "web-04", "web-05", "lab-01", "lab-02"]) {
      await fleet.enroll(name);
    }
    for (const name of ["retired-01", "left-01"]) await fleet.enroll(name);
    await fleet.enroll("gatekeeper", "02:00:00:00:bb:01");
    await fleet.enrollPending("fresh-01");
    await fleet.enrollPending("refused-01");
  });
  afterAll(() => {
    rmSync(join(PROGRAM, `Pulumi.planned-${engine}.yaml`), { force: true });
    rmSync(folder, { recursive: true, force: true });
  });

  // Compares plans of programs with all resources to the results of their apply. Other test files cover each step of a
  // plan.
  const options = { timeout: 600_000, tags: ["long"] };
  it.runIf(available)("predicts the namespace after the apply", options, async () => {
    stack = await open(before);
    const empty = await namespaceNow();
    const first = namespaceAfter(empty, await stack.preview({ values: true }));
    await stack.up({ skipPreview: true });
    await agrees(first, empty);

    // Objects outside the program have the tag too, and the rename must also apply to them.
    await createKey(fleet.client, "unmanaged", ".*", { tags: ["zone1"] });
    for (const [priority, filter] of [
      [8, { tags: ["zone1", "kept"] }],
      [9, anywhere],
    ] as const) {
      await fleet.client.createFirewallRule({
        body: {
          action: "deny",
          active: true,
          priority,
          sourceIp: "^203\\.",
          username: ".*",
          filter: "tags" in filter ? { tags: [...filter.tags] } : filter,
        },
      });
    }

    stack = await open(after);
    const today = await namespaceNow();
    const plan = await stack.preview({ values: true });
    const planned = namespaceAfter(today, plan);
    expect(planned.notEvaluated).toEqual([]);
    expect(planned.unknown).toEqual([
      expect.stringContaining("whether ana@example.com has an account on the service"),
    ]);
    expect(planned.duplicates).toEqual([]);
    expect(planned.notes).toEqual([
      'Namespace "trials" creates a namespace, which has no objects yet',
      'PublicKey "trialsKey" is in a namespace that this plan creates, and is not evaluated',
    ]);
    await stack.up({ skipPreview: true });
    const now = await agrees(planned, today);

    // Objects that were created outside the program are unmanaged, except the rule that the program adopts.
    const managed = (kind: string) =>
      new Set(planned.managed.filter((one) => one.kind === kind).map(({ id }) => id));
    const unmanaged = (kind: string, ids: readonly string[]) => ids.filter((id) => !managed(kind).has(id));
    const { keys, rules } = today.policy;
    expect(keys.filter((one) => !managed("PublicKey").has(one.fingerprint)).map(({ name }) => name)).toEqual([
      "unmanaged",
    ]);
    expect(
      rules.filter((one) => !managed("FirewallRule").has(one.id)).map(({ priority }) => priority),
    ).toEqual([8]);
    expect(unmanaged("ApiKey", apiKeysOf(today)?.map(({ name }) => name) ?? [])).toEqual([]);
    expect(
      unmanaged(
        "Member",
        membersOf(today)
          ?.filter(({ role }) => role !== "owner")
          .map(({ id }) => id) ?? [],
      ),
    ).toEqual([]);

    // After the apply, the next plan is empty and predicts no change.
    const idle = namespaceAfter(now, await stack.preview({ values: true }));
    expect(comparable(idle.policy, () => false)).toEqual(comparable(now.policy, () => false));
    expect(idle.unknown).toEqual([]);
  });

  async function agrees(planned: ReturnType<typeof namespaceAfter>, earlier: NamespaceState) {
    const now = await namespaceNow();
    const known = new Set(earlier.policy.rules.map(({ id }) => id));
    const isNew = (id: string) => !known.has(id);
    expect(comparable(planned.policy, isNew)).toEqual(comparable(now.policy, isNew));
    const seats = (members: readonly { email: string; role: string }[] | undefined) =>
      members?.map(({ email, role }) => `${email} ${role}`).sort();
    expect(seats(planned.members)).toEqual(seats(membersOf(now)));
    const ends = (keys: readonly { name: string; role: string | undefined }[] | undefined) =>
      keys?.map(({ name, role }) => `${name} ${role}`).sort();
    expect(ends(planned.apiKeys)).toEqual(ends(apiKeysOf(now)));
    const trusted = ({ trustedWorkloads = [] }: Pick<ReturnType<typeof listsOf>, "trustedWorkloads">) =>
      trustedWorkloads.map(({ name, role, claims }) => `${name} ${role} ${claims.ref}`).sort();
    expect(trusted(planned)).toEqual(trusted(listsOf(now)));
    return now;
  }
});
