/**
 * The provider text that a resource carries in its state. It is constant and tiny: the engine stores it twice
 * for each resource and keeps running the stored text after an upgrade, so it only finds the installed code.
 */
export function providerText(resource: string): string {
  return `exports.handler=()=>require("@gatehouse-access/provider/dynamic").${resource}`;
}
