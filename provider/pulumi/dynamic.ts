import { definitions } from "../resources/index.ts";
import { dynamicProvider } from "./dynamicProvider.ts";

/**
 * What the provider text in a state finds: one dynamic provider for each resource. The names are part of every
 * state file there is, so they never change.
 */
const providers = Object.fromEntries(
  definitions.map((definition) => [definition.name, dynamicProvider(definition)]),
);

export const { Namespace, Member, PublicKey, DeviceTags } = providers;
