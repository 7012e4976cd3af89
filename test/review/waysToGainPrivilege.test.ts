import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { type Drifted, driftMeaning } from "../../provider/drift/driftMeaning.ts";
import type { Step } from "../../provider/engine/index.ts";
import type { ListName } from "../../provider/model/changes.ts";
import { idWithin } from "../../provider/model/values.ts";
import { type NamespaceFixture, namespaceAfter } from "./support/namespace.ts";
import { reviewed } from "./support/namespaceReview.ts";
import {
  apiKey,
  device,
  estate,
  fingerprintOf,
  lineC,
  member,
  planOf,
  step,
  TENANT,
  uidOf,
  workload,
} from "./support/planned.ts";

const LATER = "2031-01-01T00:00:00.000Z";
const rule = { id: "1", action: "deny", active: true, priority: 5, sourceIp: ".*", username: ".*" } as const;
const everywhere = { hostname: ".*" };

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
  settings: {
    sessionRecord: true,
    connectionAnnouncement: "",
    deviceProof: "required",
    sessionMaxMinutes: 60,
    sessionIdleMinutes: 10,
    sessionRecordMode: "all",
    sessionRecordMegabytes: 0,
    sessionRecordFailure: "continue",
    sshForwarding: [],
  },
  policy: {
    devices: [
      { uid: uidOf("web-01"), name: "web-01", tags: ["prod"] },
      { uid: uidOf("open-01"), name: "open-01", tags: [] },
    ],
    keys: [
      { fingerprint: "aa", name: "ana", username: "^root$", filter: { tags: ["staff"] } },
      {
        fingerprint: "bb",
        name: "bea",
        username: "^root$",
        filter: everywhere,
        expiresAt: "2030-01-01T00:00:00.000Z",
      },
      { fingerprint: "cc", name: "carl", username: "^root$", filter: everywhere, owner: "user-carl" },
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
  readonly op: "create" | "update" | "delete";
  readonly kind: string;
  readonly sides: Sides;
  /** The inputs that the program declares, if the change is an update or a deletion. */
  readonly declared?: NonNullable<Sides["after"]>;
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
const keyState = (fingerprint: string) => ({
  before: { outputs: { fingerprint } },
  id: `${TENANT}/${fingerprint}`,
});
const ruleState = { before: { outputs: { ruleId: "1" } }, id: `${TENANT}/1` };
const deviceState = (name: string) => ({
  before: { outputs: { uid: uidOf(name) } },
  id: `${TENANT}/${uidOf(name)}`,
});
const bob = { before: { outputs: { userId: "user-bob" } }, id: `${TENANT}/user-bob` };
const bobDeclared = { email: "bob@example.com", role: "observer", expiresAt: "2030-01-01T00:00:00Z" };
const { id: workloadId, ...workloadInputs } = { ...workload, role: "operator" as const };
const workloadState = { before: { outputs: { workloadId } }, id: `${TENANT}/${workloadId}` };
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
  identity: { decides: true, policies: [], serviceAccounts: [], userKeys: new Map(), notEvaluated: [] },
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

const KEY = "1 key gains access";
const ACCESS = { section: "Access changes", drift: "access", policyTest: "access" } as const;
const API_KEYS = { section: "API key changes", drift: "apiKeys", policyTest: "apiKeys" } as const;
const MEMBERS = { section: "Member changes", drift: "members", policyTest: "members" } as const;
const WORKLOADS = {
  section: "Trusted workload changes",
  drift: "workloads",
  policyTest: "workloads",
} as const;
const SETTINGS = { section: "Setting changes", drift: "settings", policyTest: "settings" } as const;

const ways: readonly Way[] = [
  {
    way: "a public key is added",
    op: "create",
    kind: "PublicKey",
    title: KEY,
    ...ACCESS,
    sides: { after: aKey },
    created: fingerprintOf(lineC),
  },
  {
    way: "a key gets more logins or devices",
    op: "update",
    kind: "PublicKey",
    title: KEY,
    ...ACCESS,
    sides: { ...keyState("aa"), after: { ...anaKey, filter: everywhere } },
    declared: anaKey,
  },
  {
    way: "a key gets a later end",
    op: "update",
    kind: "PublicKey",
    title: KEY,
    ...ACCESS,
    sides: { ...keyState("bb"), after: { ...anaKey, name: "bea", filter: everywhere } },
    declared: { ...anaKey, name: "bea", filter: everywhere, expiresAt: "2030-01-01T00:00:00Z" },
  },
  {
    way: "the owner of keys becomes a member again",
    op: "create",
    kind: "Member",
    title: KEY,
    ...ACCESS,
    sides: { after: { email: "carl@example.com", role: "observer" } },
    created: "user-carl",
  },
  {
    way: "a rule that denies is deleted or weakened",
    op: "delete",
    kind: "FirewallRule",
    ...ACCESS,
    title: "1 key gains access",
    sides: ruleState,
    declared: declaredDenial,
  },
  {
    way: "a rule that denies gets an end",
    op: "update",
    kind: "FirewallRule",
    title: KEY,
    ...ACCESS,
    sides: { ...ruleState, after: { ...declaredDenial, expiresAt: "2029-01-01T00:00:00Z" } },
    declared: declaredDenial,
  },
  {
    way: "a device gets a tag",
    op: "create",
    kind: "DeviceTagAttachment",
    title: KEY,
    ...ACCESS,
    sides: { after: { device: "open-01", tag: "staff" } },
    created: `${uidOf("open-01")}/staff`,
  },
  {
    way: "a device gets another name",
    op: "update",
    kind: "Device",
    title: KEY,
    ...ACCESS,
    sides: { ...deviceState("web-01"), after: { device: "web-01", name: "free-01" } },
    declared: { device: uidOf("web-01"), name: "web-01" },
  },
  {
    way: "a pending device is accepted",
    op: "update",
    kind: "Device",
    title: KEY,
    ...ACCESS,
    sides: { ...deviceState("new-04"), after: { device: "new-04", status: "accepted" } },
    declared: { device: uidOf("new-04") },
  },
  {
    way: "an access policy is added or widened",
    op: "create",
    kind: "AccessPolicy",
    ...ACCESS,
    live: identity,
    title: "1 user or service account gains access",
    sides: { after: ownerPolicy },
    created: "x (new)",
  },
  {
    way: "a member gets a role above observer",
    op: "update",
    kind: "Member",
    ...MEMBERS,
    sides: { ...bob, after: { ...bobDeclared, role: "administrator" } },
    declared: bobDeclared,
    title: "role administrator: member bob&#64;example.com",
  },
  {
    way: "the membership of an administrator gets a later end",
    op: "update",
    kind: "Member",
    ...MEMBERS,
    live: administrator,
    title: "role administrator: member bob&#64;example.com",
    sides: { ...bob, after: { ...bobDeclared, role: "administrator", expiresAt: LATER } },
    declared: { ...bobDeclared, role: "administrator" },
  },
  {
    way: "an API key is added or gets a higher role",
    op: "create",
    kind: "ApiKey",
    ...API_KEYS,
    sides: { after: { name: "x", role: "operator", validDays: 30 } },
    created: "x",
    title: "role operator: API key x",
  },
  {
    way: "an API key of an administrator has no end",
    op: "create",
    kind: "ApiKey",
    ...API_KEYS,
    sides: { after: { name: "x", role: "administrator", validDays: -1 } },
    created: "x",
    title: "role administrator: API key x",
    blocks: true,
  },
  {
    way: "a trusted workload is added or gets a higher role",
    op: "update",
    kind: "TrustedWorkload",
    sides: { ...workloadState, after: { ...workloadInputs, role: "administrator" } },
    ...WORKLOADS,
    declared: workloadInputs,
    title: "role administrator: workload deploy",
  },
  {
    way: "a trusted workload accepts other tokens",
    op: "update",
    kind: "TrustedWorkload",
    ...WORKLOADS,
    sides: {
      ...workloadState,
      after: { ...workloadInputs, claims: { ...workload.claims, ref: "refs/heads/release" } },
    },
    declared: workloadInputs,
    title: "role operator: workload deploy",
  },
  {
    way: "a trusted workload accepts tokens that the lint rejects",
    op: "update",
    kind: "TrustedWorkload",
    sides: { ...workloadState, after: { ...workloadInputs, claims: { repository: "*/fleet" } } },
    declared: workloadInputs,
    title: "role operator: workload deploy",
    blocks: true,
    ...WORKLOADS,
  },
  {
    way: "a forwarding rule is added",
    op: "update",
    kind: "Namespace",
    title: "setting sshForwarding",
    sides: { ...settingsState, after: settingsWith({ sshForwarding: [{ login: ".*", target: ".*" }] }) },
    declared: settingsWith({}),
    ...SETTINGS,
  },
  {
    way: "a setting weakens a protection, such as the recording",
    op: "update",
    kind: "Namespace",
    sides: { ...settingsState, after: settingsWith({ sessionRecord: false }) },
    declared: settingsWith({}),
    title: "1 setting change",
    blocks: true,
    ...SETTINGS,
  },
  {
    way: "an install key is added or changed",
    op: "create",
    kind: "InstallKey",
    section: "Other privileges",
    title: "InstallKey x enrolls devices in the namespace",
    drift: "privileges",
    created: "x",
    sides: { after: { name: "x", mode: "automatic" } },
  },
];

const changeOf = ({ op, kind, sides }: Way): Step => step(op, kind, "x", sides);

/** Evaluates the drift of a manual change of a declared object, or of an unmanaged object. */
function driftOf({ live = base, op, kind, sides, declared, created }: Way, change: Step) {
  // A manual change has the same effect as the step.
  const { state } = namespaceAfter(live, planOf(change));
  const unmanaged =
    created === undefined
      ? []
      : state
          .watched()
          .filter((object) => object.definition.name === kind && idWithin(object).startsWith(created));
  const reverting =
    declared && step(op === "delete" ? "create" : op, kind, "x", { ...sides, after: declared });
  const fields =
    kind === "Device"
      ? [{ path: declared?.name ? "deviceName" : "deviceStatus", old: declared?.name ?? "pending" }]
      : [];
  const drifted = reverting ? [{ ...reverting, op, fields } as Drifted] : [];
  const plan = planOf(...(reverting ? [reverting] : []));
  return driftMeaning({ live: state, plan, drifted, unmanaged, home: TENANT }).namespace;
}

describe.each(ways.map((way) => [way.way, way] as const))("%s", (_, way) => {
  test("in a pull request: the title, the section and the exit code of the review", async () => {
    const { title, comment, blocking } = await reviewed(way.live ?? base, changeOf(way));
    expect(title).toContain(way.title);
    expect(title).not.toContain("no access changes");
    expect(comment).toContain(`\n### ${way.section}\n`);
    expect(blocking.length > 0, blocking.join("; ")).toBe(way.blocks === true);
  });

  test("as a manual change: the list in the drift report", () => {
    expect(driftOf(way, changeOf(way))?.[way.drift]?.length).toBeGreaterThan(0);
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
