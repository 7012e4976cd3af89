import type { Identity } from "@gatehouse-access/sdk";
import { operations, type Role, roleAtLeast } from "@gatehouse-access/sdk/contract";
import type { StepOp } from "../../engine/index.ts";
import type { Estate } from "../../estate/namespaceState.ts";
import { hasOwnCredential, type PlannedStep, topOf } from "../../plan/steps.ts";
import { byText, byTexts } from "../../words.ts";

type OperationId = keyof typeof operations;
type Work = "create" | "update" | "delete";

const needs = (
  create: readonly OperationId[],
  update: readonly OperationId[],
  remove: readonly OperationId[],
): Readonly<Record<Work, readonly OperationId[]>> => ({ create, update, delete: remove });

/** The operations that a resource calls, as its definition in provider/resources has them. */
const NEEDS: Readonly<Record<string, ReturnType<typeof needs>>> = {
  Namespace: needs(["createNamespace"], ["editNamespace"], ["deleteNamespace"]),
  Member: needs(["inviteMember"], ["updateMember"], ["removeMember"]),
  PublicKey: needs(["createPublicKey"], ["updatePublicKey"], ["deletePublicKey"]),
  FirewallRule: needs(["createFirewallRule"], ["updateFirewallRule"], ["deleteFirewallRule"]),
  ApiKey: needs(["createApiKey"], ["updateApiKey"], ["deleteApiKey"]),
  Tag: needs([], ["renameTag"], []),
  DeviceTags: needs(["updateDeviceTags"], ["updateDeviceTags"], ["deleteDeviceTag"]),
  DeviceTagAttachment: needs(["createDeviceTag"], ["createDeviceTag"], ["deleteDeviceTag"]),
  Device: needs(["updateDevice", "acceptDevice"], ["updateDevice", "updateDeviceStatus"], ["deleteDevice"]),
};

function workOf(op: StepOp): readonly Work[] {
  if (op === "import" || op === "same") return [];
  return op === "replace" ? ["create", "delete"] : [op];
}

/** Inputs that no operation is called for where nothing else changes. */
const UNSENT: Readonly<Record<string, readonly string[]>> = {
  Namespace: ["forceDestroy"],
  ApiKey: ["overlap", "rotateBefore"],
  DeviceTags: ["device"],
  DeviceTagAttachment: ["device"],
  Device: ["device", "onDestroy"],
};

/** Whoever carries a plan out, in one namespace: a user or an API key, with a role. */
export interface Actor {
  readonly kind: "user" | "apikey";
  /** Undefined where the service does not say. */
  readonly role: Role | undefined;
}

/** Whoever a credential is of, in a namespace. The service does not tell an API key which role it has. */
export function actorOf({ kind, userId }: Identity, { members }: Pick<Estate, "members">): Actor {
  if (kind === "apiKey") return { kind: "apikey", role: undefined };
  return { kind: "user", role: members?.find(({ id }) => id === userId)?.role };
}

/** An operation that a plan needs, and that the credential may not call. */
export interface Incapability {
  /** Its id, as docs/operations.md has it. */
  readonly operation: string;
  readonly reason: string;
  /** The resources of the plan that need it. */
  readonly resources: readonly string[];
}

/**
 * The operations of a plan that the service will refuse, by its contract; each operation once.
 * @param steps about the namespace in which the actor has the role
 * @param begun about namespaces that the plan makes, whose owner the actor will be
 */
export function incapabilities(
  actor: Actor,
  steps: readonly PlannedStep[],
  begun: readonly PlannedStep[],
): Incapability[] {
  const owner: Actor = { ...actor, role: undefined };
  const found = new Map<OperationId, { reason: string; resources: string[] }>();
  const look = (who: Actor) => (planned: PlannedStep) => {
    if (hasOwnCredential(planned.step)) return;
    for (const id of neededBy(planned)) {
      const reason = refusal(who, id);
      if (reason === undefined) continue;
      const entry = found.get(id) ?? { reason, resources: [] };
      entry.resources.push(planned.step.name);
      found.set(id, entry);
    }
  };
  steps.forEach(look(actor));
  begun.forEach(look(owner));
  return [...found]
    .map(([operation, { reason, resources }]) => ({ operation, reason, resources: resources.sort(byText) }))
    .sort(byTexts(({ operation }) => operation));
}

/** A replacement that moves an object to another namespace counts with the half that is done in this one. */
const neededBy = (planned: PlannedStep): readonly OperationId[] =>
  workOf(planned.step.op)
    .filter((work) => isSent(work, planned))
    .flatMap((work) => NEEDS[planned.definition.name]?.[work] ?? []);

function isSent(work: Work, { step, definition: { name }, before, after }: PlannedStep): boolean {
  if (work === "create") return after !== undefined;
  if (work === "update") return step.fields.some(({ path }) => !UNSENT[name]?.includes(topOf(path)));
  if (name === "Device" && before?.outputs.onDestroy !== "remove") return false;
  return before !== undefined && !before.retained;
}

function refusal({ kind, role }: Actor, id: OperationId): string | undefined {
  const { auth, minRole } = operations[id];
  if (kind === "apikey" && !(auth as readonly string[]).includes("apikey")) {
    return `${id} is for users, not for API keys`;
  }
  if (minRole !== null && role !== undefined && !roleAtLeast(role, minRole)) {
    return `${id} needs the role ${minRole}; the credential's is ${role}`;
  }
  return undefined;
}
