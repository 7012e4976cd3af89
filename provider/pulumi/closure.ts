/**
 * The code of its provider that a resource carries in the state. It only loads the installed code, and is constant and
 * tiny: the engine stores it twice for each resource, and runs the stored text even after an upgrade.
 */
export function providerText(resource: string): string {
  return `exports.handler=()=>require("@gatehouse-access/provider/dynamic").${resource}`;
}

/** The input by which a class says which resource it is: its URN. It is no part of any diff. */
export const LOGICAL_ID = "__logicalId";

/** The input by which a class says which state its resource is in. It is no part of any diff. */
export const STATE_ID = "__stateId";
