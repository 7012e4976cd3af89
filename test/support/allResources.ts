import { keyData, type Policy } from "./policy.ts";

/**
 * One resource of each type that the service of the tests has. The filters use the tags as text, not as outputs of the
 * Tag resources, and precede these resources in the program. So the engine does not know that the filters depend on the
 * tags.
 */
export const allResources: Policy = {
  key: {
    type: "PublicKey",
    args: { name: "laptop", data: keyData("laptop"), username: "^root$", filter: { tags: ["edge", "web"] } },
  },
  rule: {
    type: "FirewallRule",
    args: { action: "deny", priority: 5, sourceIp: "^203\\.", username: ".*", filter: { tags: ["lab"] } },
  },
  tags: { type: "DeviceTags", args: { device: "web-01", tags: ["edge", "web"] } },
  lab: { type: "DeviceTagAttachment", args: { device: "web-02", tag: "lab" } },
  gate: { type: "Device", args: { device: "02:00:00:00:bb:01", name: "gate" } },
  ci: { type: "ApiKey", args: { role: "observer", validDays: 30 } },
  deploy: {
    type: "TrustedWorkload",
    args: {
      name: "deploy",
      issuer: "https://gitlab.example.com",
      audience: "gatehouse",
      role: "operator",
      claims: { project_path: "acme/fleet", ref_protected: "true" },
    },
  },
  trials: { type: "Namespace", args: { name: "trials" } },
  bob: {
    type: "Member",
    args: { tenant: { $ref: "trials.tenant" }, email: "bob@example.com", role: "observer" },
  },
  zone: { type: "Tag", args: { name: "zone1" } },
};

/** For each resource: a changed input, and the expected step (update or replace). */
const CHANGES: Record<string, { args: Record<string, unknown>; step: string }> = {
  key: { args: { username: "^ana$" }, step: "update key username" },
  rule: { args: { priority: 7 }, step: "update rule priority" },
  tags: { args: { tags: ["edge", "web", "prod"] }, step: "update tags tags" },
  lab: { args: { device: "web-03" }, step: "replace lab device" },
  gate: { args: { name: "gate-b" }, step: "update gate name" },
  ci: { args: { keepers: { year: "2027" } }, step: "replace ci keepers" },
  deploy: { args: { claims: { project_path: "acme/*" } }, step: "update deploy claims" },
  trials: { args: { settings: { sessionRecord: false } }, step: "update trials settings" },
  bob: { args: { role: "operator" }, step: "update bob role" },
  zone: { args: { name: "zone2" }, step: "update zone name" },
};

/** The same resources, each with a changed input. */
export const changedResources: Policy = Object.fromEntries(
  Object.entries(allResources).map(([name, { type, args }]) => [
    name,
    { type, args: { ...args, ...CHANGES[name]?.args } },
  ]),
);

/** The steps of the change, without the members of the inputs. */
export const CHANGE_STEPS = Object.values(CHANGES)
  .map(({ step }) => step)
  .sort();

/** Returns a step without the members of its inputs: `update trials settings`. */
export const withoutMembers = (step: string) => step.split(".")[0];
