import { UrnPatterns } from "../engine/targets.ts";
import type { Connection } from "../resources/connection.ts";
import { definitions } from "../resources/index.ts";
import { dynamicProvider, type Runtime } from "./dynamicProvider.ts";
import { defaultTenant, type Lookup, newConnection } from "./newConnection.ts";
import { Run } from "./run.ts";

let configuration: Lookup = () => undefined;
let opened: Connection | undefined;
let replaced: UrnPatterns | undefined;

/** What the providers share in this process, which serves one run. */
const runtime: Runtime = {
  run: new Run(),
  configure(lookup) {
    configuration = lookup;
  },
  defaultTenant: () => defaultTenant(configuration),
  connection() {
    opened ??= newConnection(configuration);
    return opened;
  },
  isReplacementAsked(resource) {
    replaced ??= new UrnPatterns(JSON.parse(process.env.GATEHOUSE_REPLACE ?? "[]") as string[]);
    return replaced.has(resource);
  },
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

export { stateIdentityProvider as StateIdentity } from "./stateIdentity.ts";
