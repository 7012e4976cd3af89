import { describe, expect, test } from "vitest";
import type { PlannedStep } from "../../../provider/model/plannedStep.ts";
import { definitions } from "../../../provider/resources/index.ts";
import { type Actor, actorOf, missingPermissions } from "../../../provider/review/guards/planProblems.ts";
import { member } from "../support/planned.ts";

type Op = PlannedStep["step"]["op"];

/**
 * Returns the planned step of an operation on a resource.
 * @param paths the changed inputs of an update; default: one input that the request contains
 */
function planned(kind: string, op: Op, name = "x", paths?: readonly string[]): PlannedStep {
  const definition = definitions.find((one) => one.name === kind) as unknown as PlannedStep["definition"];
  const sent = Object.entries(definition.inputs).find(
    ([input, { isLocal }]) => input !== "tenant" && !isLocal,
  );
  const changed = op === "update" ? [sent?.[0] ?? ""] : [];
  const values = { inputs: {}, outputs: {} };
  return {
    step: { op, name, urn: name, type: "", fields: (paths ?? changed).map((path) => ({ path })) },
    definition,
    title: name,
    before: op === "create" ? undefined : values,
    after: op === "delete" ? undefined : values,
  };
}

/** Returns the step of a deletion whose resource has these outputs. */
const deletion = (kind: string, outputs: object, more: object = {}): PlannedStep => ({
  ...planned(kind, "delete"),
  before: { inputs: {}, outputs: outputs as Record<string, never>, ...more },
});

/** Returns the missing operations, each with the resources that need it. */
const missing = (actor: Actor, ...steps: readonly PlannedStep[]) =>
  missingPermissions(actor, steps, []).map(({ operation, resources }) => [operation, ...resources]);
const operationsOf = (actor: Actor, ...steps: readonly PlannedStep[]) =>
  missing(actor, ...steps).map(([operation]) => operation);

/** Callers with the fewest permissions. The contract refuses each operation of a resource to at least one of them. */
const REFUSED: readonly Actor[] = [
  { kind: "user", role: "observer" },
  { kind: "apikey", role: undefined },
  { kind: "workload", role: "observer" },
];

/** Returns the operations of a step that the contract refuses to at least one of these callers. */
const refusedOf = (kind: string, op: Op) => {
  const step = op === "delete" ? deletion(kind, { onDestroy: "remove" }) : planned(kind, op);
  return [...new Set(REFUSED.flatMap((actor) => operationsOf(actor, step)))].sort();
};

/** The operations of each resource: for its creation, its update and its deletion. */
const EXPECTED: Readonly<Record<string, readonly (readonly string[])[]>> = {
  Namespace: [["createNamespace"], ["editNamespace"], ["deleteNamespace"]],
  Member: [["inviteMember"], ["updateMember"], ["removeMember"]],
  PublicKey: [["createPublicKey"], ["updatePublicKey"], ["deletePublicKey"]],
  FirewallRule: [["createFirewallRule"], ["updateFirewallRule"], ["deleteFirewallRule"]],
  AccessPolicy: [["createAccessPolicy"], ["updateAccessPolicy"], ["deleteAccessPolicy"]],
  ServiceAccount: [["createServiceAccount"], [], ["deleteServiceAccount"]],
  InstallKey: [["createInstallKey"], ["updateInstallKey"], ["updateInstallKey"]],
  ApiKey: [["createApiKey"], ["updateApiKey"], ["deleteApiKey"]],
  TrustedWorkload: [["createTrustedWorkload"], ["updateTrustedWorkload"], ["deleteTrustedWorkload"]],
  Tag: [[], ["renameTag"], []],
  DeviceTags: [["updateDeviceTags"], ["updateDeviceTags"], ["deleteDeviceTag"]],
  DeviceTagAttachment: [["createDeviceTag"], ["createDeviceTag"], ["deleteDeviceTag"]],
  Device: [["updateDevice", "acceptDevice"], ["updateDevice", "updateDeviceStatus"], ["deleteDevice"]],
};

describe("the required operations", () => {
  test("are known for every resource", () => {
    expect(Object.keys(EXPECTED).sort()).toEqual(definitions.map(({ name }) => name).sort());
  });

  test.each(Object.entries(EXPECTED))(
    "of %s are refused to callers with the fewest permissions",
    (kind, expected) => {
      const refused = (["create", "update", "delete"] as const).map((op) => refusedOf(kind, op));
      expect(refused).toEqual(expected.map((operations) => operations.toSorted()));
    },
  );
});

const observer = { kind: "user", role: "observer" } as const;
const operator = { kind: "user", role: "operator" } as const;
const administrator = { kind: "user", role: "administrator" } as const;

describe("a caller", () => {
  test("needs the role of the operation", () => {
    const step = planned("FirewallRule", "create");
    expect(operationsOf(operator, step)).toEqual(["createFirewallRule"]);
    expect(operationsOf({ kind: "workload", role: "operator" }, step)).toEqual(["createFirewallRule"]);
    const all = Object.keys(EXPECTED).filter((kind) => kind !== "Namespace");
    const steps = all.flatMap((kind) => [planned(kind, "create"), planned(kind, "delete")]);
    expect(operationsOf(administrator, ...steps)).toEqual([]);
    expect(operationsOf({ kind: "user", role: undefined }, planned("Member", "create"))).toEqual([]);
  });

  test("may not be a workload or an API key if only users may call the operation", () => {
    const step = planned("Namespace", "create");
    expect(operationsOf({ kind: "workload", role: "administrator" }, step)).toEqual(["createNamespace"]);
    expect(operationsOf({ kind: "apikey", role: undefined }, step)).toEqual(["createNamespace"]);
    expect(operationsOf({ kind: "user", role: undefined }, step)).toEqual([]);
    const key = { kind: "apikey", role: "administrator" } as const;
    expect(operationsOf(key, planned("Member", "create"), planned("PublicKey", "create"))).toEqual([
      "inviteMember",
    ]);
  });

  test("has the role of its workload, else of its membership, and an API key has an unknown role", () => {
    const members = [member("ana", "operator")];
    const session = { name: "deploy", role: "observer", actor: "main", renewableUntil: new Date() } as const;
    const byWorkload = actorOf({ kind: "token", userId: "user-ana", workload: session }, { members });
    expect(byWorkload).toEqual({ kind: "workload", role: "observer" });
    const byUser = actorOf({ kind: "token", userId: "user-ana" }, { members });
    expect(byUser).toEqual({ kind: "user", role: "operator" });
    const byKey = actorOf({ kind: "apiKey", userId: "user-ana" }, { members });
    expect(byKey).toEqual({ kind: "apikey", role: undefined });
  });

  test("who creates a namespace is its owner, whatever role the caller has in the evaluated namespace", () => {
    const created = [planned("Namespace", "create", "n"), planned("Member", "create", "m")];
    expect(missingPermissions(observer, [], created)).toEqual([]);
    expect(missingPermissions({ kind: "apikey", role: undefined }, [], created)).toMatchObject([
      { operation: "createNamespace", resources: ["n"] },
      { operation: "inviteMember", resources: ["m"] },
    ]);
  });
});

describe("missing permissions", () => {
  test("are sorted by operation and by resource, and listed once for each operation", () => {
    const steps = ["c", "a", "b"].map((name) => planned("FirewallRule", "replace", name));
    expect(missing(observer, ...steps)).toEqual([
      ["createFirewallRule", "a", "b", "c"],
      ["deleteFirewallRule", "a", "b", "c"],
    ]);
    const [first] = missingPermissions(observer, steps, []);
    expect(first?.reason).toBe(
      "permission denied: the role administrator is required, and the credential has the role observer (createFirewallRule)",
    );
  });

  test.each<[string, readonly string[], readonly string[]]>([
    ["PublicKey", ["username"], ["updatePublicKey"]],
    ["PublicKey", ["filter.tags"], ["updatePublicKey"]],
    ["PublicKey", [], []],
    ["ApiKey", ["overlap", "rotateBefore"], []],
    ["ApiKey", ["overlap", "role"], ["updateApiKey"]],
    ["Device", ["device", "onDestroy"], []],
  ])("of an update of %s include only inputs that the request contains: %j", (kind, paths, operations) => {
    expect(operationsOf(observer, planned(kind, "update", "x", paths))).toEqual(operations);
  });

  test("are empty for imported and unchanged objects", () => {
    const imported = [[], ["username"]].map((paths) => planned("PublicKey", "import", "x", paths));
    expect(missing(observer, ...imported, planned("PublicKey", "same"))).toEqual([]);
  });

  test("of a deletion are reported only if the run deletes the device or object on the service", () => {
    expect(operationsOf(observer, deletion("Device", { onDestroy: "remove" }))).toEqual(["deleteDevice"]);
    expect(operationsOf(observer, deletion("Device", { onDestroy: "keep" }))).toEqual([]);
    expect(operationsOf(observer, deletion("Device", {}))).toEqual([]);
    expect(operationsOf(observer, deletion("PublicKey", {}, { retained: true }))).toEqual([]);
  });

  test("of a move to another namespace include only the operation in the evaluated namespace", () => {
    const move = planned("PublicKey", "replace");
    expect(operationsOf(operator, { ...move, after: undefined })).toEqual(["deletePublicKey"]);
    expect(operationsOf(operator, { ...move, before: undefined })).toEqual(["createPublicKey"]);
  });
});
