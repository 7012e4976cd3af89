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

/** Access to the objects of each kind. */
export const objects: Readonly<Record<ObjectKind, ManagedObject>> = {
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
