import { noticeText } from "../../lifecycle/lifecycle.ts";
import { pulumiRun } from "../../lifecycle/runRecord.ts";
import { definitions } from "../../resources/index.ts";
import type { Connection } from "../../service/connection.ts";
import { defaultTenant, type Lookup, newConnection } from "../../service/newConnection.ts";
import { type DynamicRuntime, dynamicProvider } from "./dynamicProvider.ts";

let configuration: Lookup = () => undefined;
let opened: Connection | undefined;
let tenant: { readonly id: string | undefined } | undefined;

/** The data that all dynamic providers in this process share. One process serves exactly one run. */
const runtime: DynamicRuntime = {
  ...pulumiRun(),
  configure(lookup) {
    configuration = lookup;
    tenant = undefined;
  },
  defaultTenant() {
    // The default namespace is cached: every check needs it, and reading the setting may open a file.
    tenant ??= { id: defaultTenant(configuration) };
    return tenant.id;
  },
  connection() {
    opened ??= newConnection(configuration, { tell: console.log });
    return opened;
  },
  // Engines print the standard output of a provider as a message of the run.
  tell: (notice) => console.log(noticeText(notice)),
};

/** The dynamic providers of all resource types, by the name of the type. */
export const providers = Object.fromEntries(
  definitions.map((definition) => [definition.name, dynamicProvider(definition, runtime)]),
);
