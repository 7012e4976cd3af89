import type { ObjectKind } from "@gatehouse-access/sdk/contract";
import type { ManagedObject } from "../changes/managedObject.ts";
import { apiKeyObject } from "./apiKeys/apiKeys.ts";
import { connectorObject } from "./connectors/connectors.ts";
import { deviceObject, deviceTagsObject } from "./devices/objects.ts";
import { firewallRuleObject } from "./firewall/rules.ts";
import { memberObject, namespaceObject } from "./namespaces/objects.ts";
import { publicKeyObject } from "./publicKeys/publicKeys.ts";
import { tagObject } from "./tags/tagTables.ts";
import { trustedWorkloadObject } from "./trustedWorkloads/trustedWorkloads.ts";
import { tunnelObject } from "./tunnels/tunnels.ts";

const kinds = {
  namespace: namespaceObject,
  member: memberObject,
  device: deviceObject,
  deviceTags: deviceTagsObject,
  tag: tagObject,
  publicKey: publicKeyObject,
  firewallRule: firewallRuleObject,
  apiKey: apiKeyObject,
  trustedWorkload: trustedWorkloadObject,
  tunnel: tunnelObject,
  connector: connectorObject,
};

/** The functions that read and declare objects, by the kind of the object. */
export const objects: Readonly<Record<ObjectKind, ManagedObject>> = kinds;

/** The types of the database rows, by the kind of the object. */
export type ObjectRows = {
  [Kind in ObjectKind]: (typeof kinds)[Kind] extends ManagedObject<infer Row> ? Row : never;
};
