import type { Diagnostic } from "../model.ts";
import { typeName, urnName, urnType } from "../urn.ts";
import type { PendingOperation } from "./resourceState.ts";

/** An operation that a run left in flight when it was stopped, and its resource. */
export type LeftOperation = { type: PendingOperation["type"]; urn: string };

/** How an operation is forgotten of which nobody can say what became of it. */
export const WAY_OUT = "look for it, then `gatehouse refresh --clear-pending-creates` forgets the operation";

/** Names an operation, and says what to do. */
export function pendingWarning({ type, urn }: LeftOperation): Diagnostic {
  const advice =
    type === "creating"
      ? `nobody knows whether it was made; if its next creation does not settle that, ${WAY_OUT}.`
      : "nobody knows whether that was done; `gatehouse refresh` finds out.";
  const message = `An earlier run was stopped while ${type} the ${typeName(urnType(urn))} ${urnName(urn)}: ${advice}`;
  return { severity: "warning", message, urn };
}
