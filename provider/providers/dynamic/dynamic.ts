import { noticeText } from "../../lifecycle/lifecycle.ts";
import { pulumiRun } from "../../lifecycle/runRecord.ts";
import { definitions } from "../../resources/index.ts";
import type { Connection } from "../../service/connection.ts";
import { defaultTenant, type Lookup, newConnection } from "../../service/newConnection.ts";
import { type DynamicRuntime, dynamicProvider } from "./dynamicProvider.ts";

let configuration: Lookup = () => undefined;
let opened: Connection | undefined;
let tenant: { readonly id: string | undefined } | undefined;

/** What the providers share in this process, which serves one run. */
const runtime: DynamicRuntime = {
  ...pulumiRun(),
  configure(lookup) {
    configuration = lookup;
    tenant = undefined;
  },
  defaultTenant() {
    // Every check asks for it, and the settings that say it may be in a file.
    tenant ??= { id: defaultTenant(configuration) };
    return tenant.id;
  },
  connection() {
    opened ??= newConnection(configuration, { tell: console.log });
    return opened;
  },
  // The engines show what a provider prints as a message of the run.
  tell: (notice) => console.log(noticeText(notice)),
};

/**
 * The dynamic providers, one for each resource: the code in a state loads them by these names. The names are in every
 * state file, so they never change.
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

export { stateIdentityProvider as StateIdentity } from "./classInputs.ts";
