// The dynamic providers. The code that a Pulumi state contains loads each provider by its name, so the names must never
// change.
export { stateIdentityProvider as StateIdentity } from "./classInputs.ts";
export * from "./generated/providers.ts";
