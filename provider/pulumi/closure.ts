/**
 * The provider text that a resource carries in its state. It is constant and tiny: the engine stores it twice
 * for each resource and keeps running the stored text after an upgrade, so it only finds the installed code.
 */
export function providerText(resource: string): string {
  return `exports.handler=()=>require("@gatehouse-access/provider/dynamic").${resource}`;
}

/** The input, no part of any diff, by which a class says which resource of which stack it is: its URN. */
export const LOGICAL_ID = "__logicalId";

/** The input, no part of any diff, by which a class says which state its resource is in. */
export const STATE_ID = "__stateId";
