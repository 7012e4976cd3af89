import { describe, expect, test } from "vitest";
import type { PlannedStep } from "../../../provider/model/plannedStep.ts";
import { definitions } from "../../../provider/resources/index.ts";
import { type Actor, actorOf, missingPermissions } from "../../../provider/review/guards/planProblems.ts";
import { member } from "../support/planned.ts";

type Kind = PlannedStep["definition"];

/**
 * Returns the planned step of an operation on a resource. An update changes an input that its request contains. The
 * deletion of a device resource removes the device.
 */
function planned(definition: Kind, op: "create" | "update" | "delete"): PlannedStep {
  const sent = Object.entries(definition.inputs).find(([name, input]) => name !== "tenant" && !input.isLocal);
  const fields = op === "update" ? [{ path: sent?.[0] ?? "" }] : [];
  const values = { inputs: {}, outputs: { onDestroy: "remove" } };
  return {
    step: { op, name: "x", urn: "x", type: "", fields },
    definition,
    title: "x",
    before: op === "create" ? undefined : values,
    after: op === "delete" ? undefined : values,
  };
}

const operationsOf = (actor: Actor, ...steps: readonly PlannedStep[]) =>
  missingPermissions(actor, steps, []).map(({ operation }) => operation);

/** Callers with the fewest permissions. The contract refuses each operation of a resource to at least one of them. */
const REFUSED: readonly Actor[] = [
  { kind: "user", role: "observer" },
  { kind: "apikey", role: undefined },
  { kind: "workload", role: "observer" },
];

/** Returns the operations of a step that the contract refuses to at least one of these callers. */
const refusedOf = (definition: Kind, op: "create" | "update" | "delete") => [
  ...new Set(REFUSED.flatMap((actor) => operationsOf(actor, planned(definition, op)))),
];

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

  test.each(definitions.map((definition) => [definition.name, definition] as const))(
    "of %s are refused to callers with the fewest permissions",
    (name, definition) => {
      const refused = (["create", "update", "delete"] as const).map((op) =>
        refusedOf(definition as unknown as Kind, op).sort(),
      );
      expect(refused).toEqual(EXPECTED[name]?.map((operations) => [...operations].sort()));
    },
  );
});

const kindNamed = (wanted: string) => definitions.find(({ name }) => name === wanted) as unknown as Kind;

describe("a caller", () => {
  test("needs the role of the operation", () => {
    const step = planned(kindNamed("FirewallRule"), "create");
    expect(operationsOf({ kind: "user", role: "operator" }, step)).toEqual(["createFirewallRule"]);
    expect(operationsOf({ kind: "user", role: "administrator" }, step)).toEqual([]);
    expect(operationsOf({ kind: "workload", role: "operator" }, step)).toEqual(["createFirewallRule"]);
  });

  test("may not be a workload or an API key if only users may call the operation", () => {
    const step = planned(kindNamed("Namespace"), "create");
    expect(operationsOf({ kind: "workload", role: "administrator" }, step)).toEqual(["createNamespace"]);
    expect(operationsOf({ kind: "apikey", role: undefined }, step)).toEqual(["createNamespace"]);
    expect(operationsOf({ kind: "user", role: undefined }, step)).toEqual([]);
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
});
