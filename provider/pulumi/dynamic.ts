import { definitions } from "../resources/index.ts";
import { dynamicProvider } from "./dynamicProvider.ts";
import { configure, connection, defaultTenant, isReplacementAsked } from "./newConnection.ts";
import { Run } from "./run.ts";

const runtime = { run: new Run(), configure, connection, defaultTenant, isReplacementAsked };

/**
 * What the provider text in a state finds: one dynamic provider for each resource. The names are part of every
 * state file there is, so they never change.
 */
const providers = Object.fromEntries(
  definitions.map((definition) => [definition.name, dynamicProvider(definition, runtime)]),
);

export const {
  Namespace,
  Member,
  PublicKey,
  FirewallRule,
  ApiKey,
  Tag,
  DeviceTags,
  DeviceTagAttachment,
  Device,
} = providers;

export { stateIdentityProvider as StateIdentity } from "./stateIdentity.ts";
