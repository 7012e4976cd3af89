import { expect } from "vitest";
import type { Step } from "../../../provider/engine/index.ts";
import type { Member } from "../../../provider/resources/member/listing.ts";
import type { NamespaceSettings } from "../../../provider/resources/namespace/resource.ts";
import type { Workload } from "../../../provider/resources/trustedWorkload.ts";
import type { ApiKey } from "../../../provider/service/listings.ts";
import { parseSshPublicKey } from "../../../sdk/contract/index.ts";
import type { AccessKey, AccessRule } from "../../../sdk/policy/index.ts";
import { sshKeyLine } from "../../provider/support/programs.ts";
import { accessDevices, emptyNamespace, lines, type NamespaceFixture, namespaceAfter } from "./namespace.ts";
import { accessRule } from "./policyObjects.ts";
import { byPlugin, managing, planOf, TENANT } from "./steps.ts";

type Device = NamespaceFixture["devices"][number];

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
export const rule = (id: string, more: Partial<AccessRule> = {}): AccessRule =>
  accessRule(id, { priority: 5, sourceIp: ".*", username: ".*", filter: { tags: ["prod"] }, ...more });
/** Returns an accepted member. */
export const member = (name: string, role: string) =>
  ({ id: `user-${name}`, email: `${name}@example.com`, role, status: "accepted" }) as Member;
/** Returns an API key in the form in which the service lists it. */
export const apiKey = (name: string, role: string) =>
  ({ name, role, createdAt: `created ${name}`, createdBy: CREATOR, expiresIn: -1 }) as ApiKey;

/** The trusted workload of the namespace. */
export const workload: Workload = {
  id: "65a1f0c2d3e4b5a697887766",
  name: "deploy",
  role: "operator",
  audience: "gatehouse",
  issuer: "https://token.actions.githubusercontent.com",
  claims: { repository: "acme/fleet", ref: "refs/heads/main" },
  maxSessionMinutes: 60,
  singleUse: true,
};

/** Settings that protect the sessions of a namespace. */
export const SETTINGS: NamespaceSettings = {
  sessionRecord: true,
  connectionAnnouncement: "",
  deviceProof: "required",
  sessionMaxMinutes: 60,
  sessionIdleMinutes: 10,
  sessionRecordMode: "all",
  sessionRecordMegabytes: 0,
  sessionRecordFailure: "end",
  sshForwarding: [],
};

/** The devices of the namespace: three accepted devices and a pending one. */
export const devices = [
  device("web-01", ["prod"]),
  device("web-02", ["prod", "web"]),
  device("lab-03", ["lab"]),
  device("new-04", [], { status: "pending" }),
];
/** The namespace before the plan, as it exists on the service. */
export const estate = emptyNamespace(TENANT, {
  devices,
  policy: {
    devices: accessDevices(devices.filter(({ status }) => status === "accepted")),
    keys: [keyA, keyB],
    rules: [rule("1"), rule("2", { priority: 9, action: "allow" })],
  },
  members: [member("owner", "owner"), member("bob", "observer")],
  apiKeys: [apiKey("ci", "observer")],
  trustedWorkloads: [workload],
});

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
export const keyState = managing("PublicKey", keyA.fingerprint, { name: "a" });
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
export const ruleState = managing("FirewallRule", "1");
/** Returns the outputs in the state of a resource that belongs to a device. */
export const on = (name: string) => ({ uid: uidOf(name), deviceName: name });
