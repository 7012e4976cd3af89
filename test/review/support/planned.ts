import { expect } from "vitest";
import type { Plan, Shown, Step, StepOp } from "../../../provider/engine/index.ts";
import { parseSshPublicKey } from "../../../sdk/contract/index.ts";
import type { AccessKey, AccessRule } from "../../../sdk/policy/index.ts";
import { sshKeyLine } from "../../provider/support/programs.ts";
import { lines, type NamespaceFixture, namespaceAfter } from "./namespace.ts";

type Values = Record<string, Shown>;
type Device = NamespaceFixture["devices"][number];

/** The id of the plan's namespace, and the id of another namespace. */
export const TENANT = "11111111-2222-4333-8444-555555555555";
export const OTHER = "99999999-2222-4333-8444-555555555555";
/** Id of the user who created all API keys. */
export const CREATOR = "65f1a0000000000000000001";

/** Returns the uid of the device with this name. */
export const uidOf = (name: string) => Buffer.from(name).toString("hex").padEnd(64, "0").slice(0, 64);
/** Returns a device. The status is "accepted" by default. */
export const device = (name: string, tags: string[], more: Partial<Device> = {}): Device =>
  ({
    uid: uidOf(name),
    name,
    tags,
    status: "accepted",
    identity: { mac: `02:00:00:00:00:${name.slice(-2)}` },
    ...more,
  }) as Device;

const [lineA, lineB] = [sshKeyLine("a"), sshKeyLine("b")];
/** The public key data of a key that the namespace does not contain. */
export const lineC = sshKeyLine("c");
/** Returns the fingerprint of a key's public key data. */
export const fingerprintOf = (line: string) => parseSshPublicKey(line).fingerprint;
/** The keys of the namespace. */
export const keyA: AccessKey = {
  fingerprint: fingerprintOf(lineA),
  name: "a",
  username: "^root$",
  filter: { tags: ["prod"] },
};
export const keyB: AccessKey = {
  fingerprint: fingerprintOf(lineB),
  name: "b",
  username: ".*",
  filter: { hostname: "^web" },
};
lines.set(keyA.fingerprint, lineA).set(keyB.fingerprint, lineB);
/** Returns a firewall rule. By default the rule denies every login on devices with the tag `prod`. */
export const rule = (id: string, more: Partial<AccessRule> = {}): AccessRule => ({
  id,
  action: "deny",
  active: true,
  priority: 5,
  sourceIp: ".*",
  username: ".*",
  filter: { tags: ["prod"] },
  ...more,
});
/** Returns an accepted member. */
export const member = (name: string, role: string) =>
  ({ id: `user-${name}`, email: `${name}@example.com`, role, status: "accepted" }) as NonNullable<
    NamespaceFixture["members"]
  >[number];
/** Returns an API key in the form in which the service lists it. */
export const apiKey = (name: string, role: string) =>
  ({ name, role, createdAt: `created ${name}`, createdBy: CREATOR, expiresIn: -1 }) as NonNullable<
    NamespaceFixture["apiKeys"]
  >[number];

/** The trusted workload of the namespace. */
export const workload: NonNullable<NamespaceFixture["trustedWorkloads"]>[number] = {
  id: "65a1f0c2d3e4b5a697887766",
  name: "deploy",
  role: "operator",
  audience: "gatehouse",
  issuer: "https://token.actions.githubusercontent.com",
  claims: { repository: "acme/fleet", ref: "refs/heads/main" },
  maxSessionMinutes: 60,
  singleUse: true,
};

/** The devices of the namespace: three accepted devices and a pending one. */
export const devices = [
  device("web-01", ["prod"]),
  device("web-02", ["prod", "web"]),
  device("lab-03", ["lab"]),
  device("new-04", [], { status: "pending" }),
];
/** The namespace before the plan, as it exists on the service. */
export const estate: NamespaceFixture = {
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
  trustedWorkloads: [workload],
  seen: { sessions: 0, logins: [], addresses: [] },
  notEvaluated: [],
  unknown: [],
  accessUnknown: undefined,
  identity: undefined,
  settings: undefined,
  formerOwners: new Map(),
  enforcesExpiry: false,
};

interface Sides {
  readonly before?: { inputs?: Values; outputs: Values };
  readonly after?: Values;
  readonly id?: string;
}

/** Returns the URN of a dynamic resource. */
export const urnOf = (kind: string, name: string) =>
  `urn:pulumi:test::project::pulumi-nodejs:dynamic/gatehouse:${kind}::${name}`;

/** Returns a step of a plan, with the values of its resource. */
export function step(op: StepOp, kind: string, name: string, { before, after, id }: Sides): Step {
  const was = before && { inputs: before.inputs ?? {}, outputs: { tenant: TENANT, ...before.outputs } };
  return {
    op,
    urn: urnOf(kind, name),
    type: `pulumi-nodejs:dynamic/gatehouse:${kind}`,
    name,
    fields: [],
    ...(id !== undefined && { id }),
    ...(was && { before: was }),
    // In a preview, only an unchanged or imported resource has outputs. For other resources, this function uses the
    // inputs as outputs.
    ...(after && {
      after: {
        inputs: after,
        outputs: op === "same" || op === "import" ? (was?.outputs ?? { tenant: TENANT, ...after }) : after,
      },
    }),
  };
}

/** Returns a plan with these steps. */
export const planOf = (...steps: Step[]) => ({ steps }) as unknown as Plan;
/** Converts a step of a dynamic resource to the same step of a plugin resource. */
export const byPlugin = (one: Step): Step => {
  const type = one.type.replace("pulumi-nodejs:dynamic/gatehouse:", "gatehouse:index:");
  return { ...one, type, urn: one.urn.replace(one.type, type) };
};
const appliedSteps = (steps: readonly Step[], now: Date) =>
  namespaceAfter(estate, planOf(...steps), { creatorRole: "administrator", now });
/**
 * Returns the planned policy for these steps, run by an administrator. Checks that the same steps with plugin resources
 * result in the same policy.
 */
export function plan(...steps: Step[]) {
  const now = new Date();
  const planned = appliedSteps(steps, now);
  const { policy, members, apiKeys, unknown, notes, managed, duplicates } = appliedSteps(
    steps.map(byPlugin),
    now,
  );
  const named = { policy, members, apiKeys, unknown, notes };
  expect(planned).toMatchObject(named);
  expect([managed.length, duplicates.length]).toEqual([planned.managed.length, planned.duplicates.length]);
  return planned;
}
/** Returns the tags that a device has after the plan. */
export const tagsOf = (planned: ReturnType<typeof plan>, name: string) =>
  planned.policy.devices.find((one) => one.name === name)?.tags;

/**
 * Values of a PublicKey resource that manages the namespace's first key: its id, its state before the plan, and new
 * inputs that change the key.
 */
export const keyId = `${TENANT}/${keyA.fingerprint}`;
export const keyState = { before: { outputs: { fingerprint: keyA.fingerprint, name: "a" } }, id: keyId };
export const keyInputs = { name: "a", data: lineA, username: "^ana$", filter: { hostname: ".*" } };
/** Inputs of a FirewallRule, and the state of a FirewallRule before the plan. */
export const ruleInputs = {
  action: "allow",
  active: true,
  priority: 7,
  sourceIp: "^10\\.",
  username: ".*",
  filter: { hostname: ".*" },
};
export const ruleState = { before: { outputs: { ruleId: "1" } }, id: `${TENANT}/1` };
/** Returns the outputs in the state of a resource that belongs to a device. */
export const on = (name: string) => ({ uid: uidOf(name), deviceName: name });
