import type { AccessMapMeta } from "../../../provider/map/accessMapData.ts";
import { countingInvited, evaluatedFor } from "../../../provider/namespace/readNamespace.ts";
import { everyDevice } from "../../../provider/privileges/accessLines.ts";
import {
  type Access,
  type AccessDevice,
  type AccessKey,
  type EvaluationOptions,
  evaluateAccess,
  loginsToEvaluate,
  type NamespacePolicy,
} from "../../../sdk/policy/index.ts";
import { accessKey, accessRule } from "./policyObjects.ts";

/** Two policies before and after a change, both evaluated for the same logins, addresses and device uids. */
export function accessesOf(
  before: NamespacePolicy,
  after: NamespacePolicy,
): { before: Access; after: Access } {
  const evaluated = loginsToEvaluate([before, after]);
  const uids = [...new Set([...before.devices, ...after.devices].map(({ uid }) => uid))];
  return { before: evaluateAccess(before, evaluated, uids), after: evaluateAccess(after, evaluated, uids) };
}

/** Evaluates two policies for the same logins, addresses and devices, as reviews do. */
export function accesses(
  old: NamespacePolicy,
  now: NamespacePolicy,
  options: EvaluationOptions = {},
): { readonly before: Access; readonly after: Access } {
  const [before, after] = [old, now].map(countingInvited) as [NamespacePolicy, NamespacePolicy];
  const seen = { sessions: 0, logins: [], addresses: [] };
  const evaluated = evaluatedFor({ seen }, [before, after], options);
  const uids = everyDevice(before, after).map(({ uid }) => uid);
  const time = new Date();
  const of = (policy: NamespacePolicy) => evaluateAccess(policy, evaluated, uids, time);
  return { before: of(before), after: of(after) };
}

export const meta: AccessMapMeta = {
  title: "Contractors leave the core, on-call reaches the lab",
  project: "fleet-access",
  stack: "prod",
  service: "https://access.example.org",
  when: "2026-11-21 16:40 UTC",
  notes: [
    "Members with the role owner can change the policy itself; the map shows who can log in to devices.",
  ],
};

const PEOPLE = ["Ana Silva", "Bo Chen", "Carla Romano", "Dev Patel", "Northwind (contractor)"];

/** The members of the example. The texts of the map contain the name instead of an e-mail address. */
const members = PEOPLE.map((email) => ({ id: email, email, isAccepted: true }));

const key = (
  fingerprint: string,
  name: string,
  username: string,
  tags: readonly string[],
  owner?: string,
): AccessKey => accessKey(name, { fingerprint, username, filter: { tags }, ...(owner && { owner }) });

function fleet(): AccessDevice[] {
  const named = (prefix: string, count: number, tags: readonly string[]) =>
    Array.from({ length: count }, (_, index) => {
      const name = `${prefix}-${String(index + 1).padStart(2, "0")}`;
      return { uid: `uid-${name}`, name, tags };
    });
  return [
    ...named("web", 6, ["prod", "web"]),
    ...named("db", 3, ["db", "prod"]),
    ...named("edge-berlin", 8, ["edge"]),
    ...named("edge-lisbon", 5, ["edge", "pilot"]),
    ...named("lab", 4, ["lab"]),
    ...named("bastion", 1, ["core"]),
    ...named("build", 2, ["ci"]),
  ];
}

const BEFORE: NamespacePolicy = {
  devices: fleet(),
  members,
  keys: [
    key("SHA256:3q0bWm8n6hY1aQ", "ana-laptop", "^(root|deploy)$", ["prod", "web", "core"], "Ana Silva"),
    key("SHA256:Kf92LxTtqV0eRs", "ana-yubikey", "^root$", ["prod", "core"], "Ana Silva"),
    key("SHA256:pZ71uGc4yWd8Jm", "bo-laptop", "^deploy$", ["web", "edge", "ci"], "Bo Chen"),
    key("SHA256:Xv5sNqR2bTz6Ha", "carla-laptop", "^deploy$", ["edge", "lab"], "Carla Romano"),
    key("SHA256:m8DyE1kPo3LwUc", "dev-laptop", "^deploy$", ["edge"], "Dev Patel"),
    key(
      "SHA256:t6FhJ0sIr9MgBv",
      "northwind-2024",
      "^(root|deploy)$",
      ["core", "db", "pilot"],
      "Northwind (contractor)",
    ),
    key("SHA256:c4NzA7vYq5SxOe", "ci-runner", "^deploy$", ["web", "ci"]),
  ],
  rules: [accessRule("12", { priority: 10, username: "^root$", filter: { tags: ["lab"] } })],
};

const AFTER: NamespacePolicy = {
  devices: fleet(),
  members,
  keys: [
    ...BEFORE.keys.filter(({ name }) => !["northwind-2024", "dev-laptop"].includes(name)),
    key("SHA256:m8DyE1kPo3LwUc", "dev-laptop", "^deploy$", ["edge", "lab"], "Dev Patel"),
    key("SHA256:t6FhJ0sIr9MgBv", "northwind-2024", "^(root|deploy)$", ["pilot"], "Northwind (contractor)"),
    key("SHA256:w2RjC9bUf8QkZi", "oncall-phone", "^root$", ["lab", "core"]),
  ],
  rules: [
    accessRule("oncall-office", {
      priority: 20,
      action: "allow",
      username: "^root$",
      sourceIp: "^198\\.51\\.100\\.",
      filter: { tags: ["lab"] },
    }),
    ...BEFORE.rules,
    accessRule("no-root-on-pilots", { priority: 30, username: "^root$", filter: { tags: ["pilot"] } }),
  ],
};

/** A small change that has every kind of effect. The documentation shows it as an example. */
export const example = accessesOf(BEFORE, AFTER);

/** A change in a large estate: three of a hundred keys change. */
export function largeEstate(devices: number, keys: number): { before: Access; after: Access } {
  const sites = ["berlin", "lisbon", "oslo", "turin", "lyon", "cork", "graz", "bergen"];
  const roles = ["edge", "gateway", "camera", "pump", "meter"];
  const fleet = Array.from({ length: devices }, (_, index): AccessDevice => {
    const [site = "", role = ""] = [sites[index % 8], roles[index % 5]];
    const tags = index % 3 === 0 ? [site, role, "pilot"] : [site, role];
    return { uid: `uid-${index}`, name: `${role}-${site}-${index}`, tags };
  });
  const keyAt = (index: number, moved: boolean): AccessKey => {
    const tag = index % 2 === 0 ? sites[(index + (moved ? 1 : 0)) % 8] : roles[(index + (moved ? 1 : 0)) % 5];
    return key(`SHA256:large${index}`, `key-${index}`, index % 3 === 0 ? "" : "^deploy$", [tag ?? ""]);
  };
  const policy = (moved: boolean): NamespacePolicy => ({
    devices: fleet,
    keys: Array.from({ length: keys }, (_, index) => keyAt(index, moved && index % 33 === 0)),
    rules: [
      accessRule("1", { priority: 5, username: "^root$", filter: { tags: ["pilot"] } }),
      accessRule("2", { priority: 6, sourceIp: "^203\\.0\\.113\\.", filter: { tags: ["camera"] } }),
    ],
  });
  return accessesOf(policy(false), policy(true));
}
