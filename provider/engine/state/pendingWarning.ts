import type { Diagnostic } from "../model.ts";
import { typeName, urnName, urnType } from "../urn.ts";
import type { PendingOperation } from "./resourceState.ts";

/** How people get rid of the warning of an operation that nobody can settle. */
export const WAY_OUT = "look for it, then `gatehouse refresh --clear-pending-creates` forgets the operation";

/** The warning that a run was stopped while an operation was in flight, with a way out. */
export function pendingWarning(type: PendingOperation["type"], urn: string): Diagnostic {
  const advice =
    type === "creating"
      ? `nobody knows whether it was made; if its next creation does not settle that, ${WAY_OUT}.`
      : "nobody knows whether that was done; `gatehouse refresh` finds out.";
  const message = `An earlier run was stopped while ${type} the ${typeName(urnType(urn))} ${urnName(urn)}: ${advice}`;
  return { severity: "warning", message, urn };
}
