import * as pulumi from "@pulumi/pulumi";
import {
  getApiKeys,
  getDevices,
  getFirewallRules,
  getMembers,
  getNamespace,
  getPublicKeys,
  getTags,
} from "./lookups.ts";

type Given<T> = T extends readonly (infer Item)[] ? readonly pulumi.Input<Item>[] : T;

/** What a lookup takes, each part also as an output. */
export type LookupInputs<Lookup> = { readonly [Part in keyof Lookup]: pulumi.Input<Given<Lookup[Part]>> };

/** The lookup as an output: it asks when what it is asked for is known. */
const withOutputs =
  <Lookup extends object, Found>(ask: (lookup?: Lookup) => Promise<Found>) =>
  (lookup?: LookupInputs<Lookup>): pulumi.Output<Found> =>
    pulumi.output(lookup ?? {}).apply((known) => ask(known as Lookup));

export const getDevicesOutput = withOutputs(getDevices);
export const getNamespaceOutput = withOutputs(getNamespace);
export const getMembersOutput = withOutputs(getMembers);
export const getPublicKeysOutput = withOutputs(getPublicKeys);
export const getFirewallRulesOutput = withOutputs(getFirewallRules);
export const getApiKeysOutput = withOutputs(getApiKeys);
export const getTagsOutput = withOutputs(getTags);
