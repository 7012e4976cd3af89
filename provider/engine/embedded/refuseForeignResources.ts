import { UnsupportedError } from "../errors.ts";
import { isProviderState } from "../state/resourceState.ts";
import { unsupportedUse } from "../unsupported.ts";
import { urnName } from "../urn.ts";
import { isDynamicType } from "./program/goal.ts";

/** Throws UnsupportedError where the state holds what the engine could not look after. */
export function refuseForeignResources(resources: readonly { [key: string]: unknown }[]): void {
  const uses = resources.flatMap((stored) => {
    const state = { urn: String(stored.urn), custom: stored.custom === true, type: String(stored.type) };
    const where = `${urnName(state.urn)} (${state.type}, in the state)`;
    if (stored.external) return [unsupportedUse("external-state", where)];
    if (stored.viewOf) return [unsupportedUse("views", where)];
    if (!state.custom || isDynamicType(state.type)) return [];
    if (isProviderState(state)) {
      if (state.type === "pulumi:providers:pulumi-nodejs" && urnName(state.urn) === "default") return [];
      return [unsupportedUse("explicit-provider", where)];
    }
    return [unsupportedUse("package", where)];
  });
  if (uses.length > 0) throw new UnsupportedError(uses);
}
