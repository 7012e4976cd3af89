import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { type Drifted, driftMeaning } from "../../provider/drift/driftMeaning.ts";
import type { Step } from "../../provider/engine/index.ts";
import type { ListName } from "../../provider/model/changes.ts";
import { idWithin } from "../../provider/model/values.ts";
import type { AccessKey } from "../../sdk/policy/index.ts";
import { identityFixture, type NamespaceFixture, namespaceAfter } from "./support/namespace.ts";
import { reviewed } from "./support/namespaceReview.ts";
import {
  apiKey,
  device,
  estate,
  fingerprintOf,
  lineC,
  member,
  ruleState,
  SETTINGS,
  uidOf,
  workload,
} from "./support/planned.ts";
import { accessKey } from "./support/policyObjects.ts";
import { creation, managing, planOf, step, TENANT } from "./support/steps.ts";

const LATER = "2031-01-01T00:00:00.000Z";
const rule = { id: "1", action: "deny", active: true, priority: 5, sourceIp: ".*", username: ".*" } as const;
const everywhere = { hostname: ".*" };
const rootKey = (fingerprint: string, name: string, more: Partial<AccessKey>): AccessKey =>
  accessKey(name, { fingerprint, username: "^root$", filter: everywhere, ...more });

/** A namespace whose server ends access. A rule denies every login, except on the device `open-01`. */
const base: NamespaceFixture = {
  ...estate,
  enforcesExpiry: true,
  devices: [device("web-01", ["prod"]), device("open-01", []), device("new-04", [], { status: "pending" })],
  members: [
    member("owner", "owner"),
    { ...member("bob", "observer"), accessExpiresAt: "2030-01-01T00:00:00.000Z" },
  ],
  apiKeys: [apiKey("ci", "observer")],
  trustedWorkloads: [{ ...workload, role: "operator" }],
  settings: SETTINGS,
  policy: {
    devices: [
      { uid: uidOf("web-01"), name: "web-01", tags: ["prod"] },
      { uid: uidOf("open-01"), name: "open-01", tags: [] },
    ],
    keys: [
      rootKey("aa", "ana", { filter: { tags: ["staff"] } }),
      rootKey("bb", "bea", { expiresAt: "2030-01-01T00:00:00.000Z" }),
      rootKey("cc", "carl", { owner: "user-carl" }),
    ],
    rules: [{ ...rule, filter: { hostname: "^web-01$" } }],
    members: [
      { id: "user-owner", email: "owner@example.com", isAccepted: true },
      { id: "user-bob", email: "bob@example.com", isAccepted: true },
    ],
  },
  formerOwners: new Map([["carl@example.com", "user-carl"]]),
};

type Sides = Parameters<typeof step>[3];

/** A way by which a pull request or a manual change can widen a privilege. */
interface Way {
  readonly way: string;
  /** The namespace before the change. @default {@link base} */
  readonly live?: NamespaceFixture;
  /** The step of a plan that makes the change. */
  readonly change: Step;
  /** The inputs that the program declares, if the change is an update or a deletion. */
  readonly declared?: NonNullable<Step["after"]>["inputs"];
  /** The id of the created object. */
  readonly created?: string;
  /** A part of the title of the review. */
  readonly title: string;
  /** The section of the review. */
  readonly section: string;
  /** True if the review exits with 2. */
  readonly blocks?: true;
  /** The list of the drift report. */
  readonly drift: "access" | ListName;
  /** The subject of a policy test; undefined if policy tests do not cover the privilege. */
  readonly policyTest?: string;
}

const aKey = { name: "new", data: lineC, username: "^root$", filter: { hostname: "^open-01$" } };
const anaKey = { name: "ana", data: lineC, username: "^root$", filter: { tags: ["staff"] } };
const denial = { ...rule, filter: { hostname: "^web-01$" } };
const { id: _ruleId, ...declaredDenial } = denial;
const bob = managing("Member", "user-bob");
const bobDeclared = { email: "bob@example.com", role: "observer", expiresAt: "2030-01-01T00:00:00Z" };
const { id: workloadId, ...workloadInputs } = { ...workload, role: "operator" as const };
const workloadState = managing("TrustedWorkload", workloadId);
const administrator: NamespaceFixture = {
  ...base,
  members: [
    member("owner", "owner"),
    { ...member("bob", "administrator"), accessExpiresAt: "2030-01-01T00:00:00.000Z" },
  ],
};
const settingsState = { before: { outputs: {} }, id: TENANT };
const settingsWith = (changes: object) => ({
  name: "fleet",
  settings: { ...base.settings, ...changes } as never,
});
const identity: NamespaceFixture = {
  ...base,
  identity: identityFixture(),
  policy: { ...base.policy, identity: { policies: [], principals: [] } },
};
const ownerPolicy = {
  name: "owner",
  subject: { user: "user-owner" },
  filter: everywhere,
  logins: ["root"],
  sourceIps: [],
  action: "allow",
  requireReauth: false,
  reauthPeriod: 0,
};

const ACCESS = {
  title: "1 key gains access",
  section: "Access changes",
  drift: "access",
  policyTest: "access",
} as const;
const API_KEYS = { section: "API key changes", drift: "apiKeys", policyTest: "apiKeys" } as const;
const MEMBERS = { section: "Member changes", drift: "members", policyTest: "members" } as const;
const WORKLOADS = {
  section: "Trusted workload changes",
  drift: "workloads",
  policyTest: "workloads",
} as const;
const SETTING_CHANGES = { section: "Setting changes", drift: "settings", policyTest: "settings" } as const;

const update = (kind: string, state: Sides, after: Sides["after"] & {}) =>
  step("update", kind, "x", { ...state, after });

const ways: readonly Way[] = [
  {
    way: "a public key is added",
    change: creation("PublicKey", "x", aKey),
    created: fingerprintOf(lineC),
    ...ACCESS,
  },
  {
    way: "a key gets more logins or devices",
    change: update("PublicKey", managing("PublicKey", "aa"), { ...anaKey, filter: everywhere }),
    declared: anaKey,
    ...ACCESS,
  },
  {
    way: "a key gets a later expiry",
    change: update("PublicKey", managing("PublicKey", "bb"), { ...anaKey, name: "bea", filter: everywhere }),
    declared: { ...anaKey, name: "bea", filter: everywhere, expiresAt: "2030-01-01T00:00:00Z" },
    ...ACCESS,
  },
  {
    way: "the owner of keys becomes a member again",
    change: creation("Member", "x", { email: "carl@example.com", role: "observer" }),
    created: "user-carl",
    ...ACCESS,
  },
  {
    way: "a rule that denies is deleted or weakened",
    change: step("delete", "FirewallRule", "x", ruleState),
    declared: declaredDenial,
    ...ACCESS,
  },
  {
    way: "a rule that denies gets an expiry",
    change: update("FirewallRule", ruleState, { ...declaredDenial, expiresAt: "2029-01-01T00:00:00Z" }),
    declared: declaredDenial,
    ...ACCESS,
  },
  {
    way: "a device gets a tag",
    change: creation("DeviceTagAttachment", "x", { device: "open-01", tag: "staff" }),
    created: `${uidOf("open-01")}/staff`,
    ...ACCESS,
  },
  {
    way: "a device is renamed",
    change: update("Device", managing("Device", uidOf("web-01")), { device: "web-01", name: "free-01" }),
    declared: { device: uidOf("web-01"), name: "web-01" },
    ...ACCESS,
  },
  {
    way: "a pending device is accepted",
    change: update("Device", managing("Device", uidOf("new-04")), { device: "new-04", status: "accepted" }),
    declared: { device: uidOf("new-04") },
    ...ACCESS,
  },
  {
    way: "an access policy is added or widened",
    live: identity,
    change: creation("AccessPolicy", "x", ownerPolicy),
    created: "x (new)",
    ...ACCESS,
    title: "1 user or service account gains access",
  },
  {
    way: "a member gets a role above observer",
    change: update("Member", bob, { ...bobDeclared, role: "administrator" }),
    declared: bobDeclared,
    ...MEMBERS,
    title: "role administrator: member bob&#64;example.com",
  },
  {
    way: "the membership of an administrator gets a later expiry",
    live: administrator,
    change: update("Member", bob, { ...bobDeclared, role: "administrator", expiresAt: LATER }),
    declared: { ...bobDeclared, role: "administrator" },
    ...MEMBERS,
    title: "role administrator: member bob&#64;example.com",
  },
  {
    way: "an API key is added or gets a higher role",
    change: creation("ApiKey", "x", { name: "x", role: "operator", validDays: 30 }),
    created: "x",
    ...API_KEYS,
    title: "role operator: API key x",
  },
  {
    way: "an API key with the role administrator has no expiry",
    change: creation("ApiKey", "x", { name: "x", role: "administrator", validDays: -1 }),
    created: "x",
    ...API_KEYS,
    title: "role administrator: API key x",
    blocks: true,
  },
  {
    way: "a trusted workload is added or gets a higher role",
    change: update("TrustedWorkload", workloadState, { ...workloadInputs, role: "administrator" }),
    declared: workloadInputs,
    ...WORKLOADS,
    title: "role administrator: workload deploy",
  },
  {
    way: "a trusted workload accepts other tokens",
    change: update("TrustedWorkload", workloadState, {
      ...workloadInputs,
      claims: { ...workload.claims, ref: "refs/heads/release" },
    }),
    declared: workloadInputs,
    ...WORKLOADS,
    title: "role operator: workload deploy",
  },
  {
    way: "a trusted workload accepts tokens that the lint rejects",
    change: update("TrustedWorkload", workloadState, {
      ...workloadInputs,
      claims: { repository: "*/fleet" },
    }),
    declared: workloadInputs,
    ...WORKLOADS,
    title: "role operator: workload deploy",
    blocks: true,
  },
  {
    way: "a forwarding rule is added",
    change: update(
      "Namespace",
      settingsState,
      settingsWith({ sshForwarding: [{ login: ".*", target: ".*" }] }),
    ),
    declared: settingsWith({}),
    ...SETTING_CHANGES,
    title: "setting sshForwarding",
  },
  {
    way: "a setting weakens a protection, such as the recording",
    change: update("Namespace", settingsState, settingsWith({ sessionRecord: false })),
    declared: settingsWith({}),
    ...SETTING_CHANGES,
    title: "1 setting change",
    blocks: true,
  },
  {
    way: "an install key is added or changed",
    change: creation("InstallKey", "x", { name: "x", mode: "automatic" }),
    created: "x",
    section: "Other privileges",
    title: "InstallKey x enrolls devices in the namespace",
    drift: "privileges",
  },
];

/** Evaluates the drift of a manual change of a declared object, or of an unmanaged object. */
function driftOf({ live = base, change, declared, created }: Way) {
  const kind = change.type.split(":").at(-1);
  // A manual change has the same effect as the step.
  const { state } = namespaceAfter(live, planOf(change));
  const unmanaged =
    created === undefined
      ? []
      : state
          .watched()
          .filter((object) => object.definition.name === kind && idWithin(object).startsWith(created));
  const reverting = declared && {
    ...change,
    op: change.op === "delete" ? "create" : change.op,
    after: { inputs: declared, outputs: declared },
  };
  const fields =
    kind === "Device"
      ? [{ path: declared?.name ? "deviceName" : "deviceStatus", old: declared?.name ?? "pending" }]
      : [];
  const drifted = reverting ? [{ ...reverting, op: change.op, fields } as Drifted] : [];
  const plan = planOf(...(reverting ? [reverting as Step] : []));
  return driftMeaning({ live: state, plan, drifted, unmanaged, home: TENANT }).namespace;
}

describe.each(ways.map((way) => [way.way, way] as const))("%s", (_, way) => {
  test("in a pull request: the title, the section and the exit code of the review", async () => {
    const { title, comment, blocking } = await reviewed(way.live ?? base, way.change);
    expect(title).toContain(way.title);
    expect(title).not.toContain("no access changes");
    expect(comment).toContain(`\n### ${way.section}\n`);
    expect(blocking.length > 0, blocking.join("; ")).toBe(way.blocks === true);
  });

  test("as a manual change: the list in the drift report", () => {
    expect(driftOf(way)?.[way.drift]?.length).toBeGreaterThan(0);
  });
});

const DRIFT_SECTIONS: Readonly<Record<Way["drift"], string>> = {
  access: "Access changes from drift",
  members: "Member changes from drift",
  workloads: "Trusted workload changes from drift",
  apiKeys: "API key changes from drift",
  settings: "Setting changes from drift",
  privileges: "Other privileges from drift",
};

test("the guide has the table of these ways", () => {
  const guide = readFileSync(new URL("../../docs/guides/review.md", import.meta.url), "utf8");
  const rows = ways.map(({ way, title, section, blocks, drift, policyTest }) => {
    const shown = title.replace("&#64;", "@");
    const cells = [
      way,
      `\`${shown}\``,
      section,
      blocks ? "2" : "0",
      DRIFT_SECTIONS[drift],
      policyTest ?? "none",
    ];
    return `| ${cells.join(" | ")} |`;
  });
  for (const row of rows) expect(guide.replaceAll(/ +/g, " ")).toContain(row);
});
