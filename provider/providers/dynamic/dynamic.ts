// Exports the dynamic providers. A Pulumi state contains code that loads each provider by its name, so the names must
// never change.
export { stateIdentityProvider as StateIdentity } from "./classInputs.ts";
export * from "./generated/providers.ts";
