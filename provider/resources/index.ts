import { accessPolicy } from "./accessPolicy.ts";
import { apiKey } from "./apiKey.ts";
import type { ResourceDefinition } from "./definition.ts";
import { device } from "./device.ts";
import { deviceTagAttachment } from "./deviceTagAttachment.ts";
import { deviceTags } from "./deviceTags.ts";
import { firewallRule } from "./firewallRule.ts";
import { installKey } from "./installKey.ts";
import { member } from "./member.ts";
import { namespace } from "./namespace.ts";
import { publicKey } from "./publicKey.ts";
import { serviceAccount } from "./serviceAccount.ts";
import { tag } from "./tag.ts";
import { trustedWorkload } from "./trustedWorkload.ts";

const byKind = {
  Namespace: namespace,
  Member: member,
  PublicKey: publicKey,
  FirewallRule: firewallRule,
  ApiKey: apiKey,
  TrustedWorkload: trustedWorkload,
  Tag: tag,
  DeviceTags: deviceTags,
  DeviceTagAttachment: deviceTagAttachment,
  Device: device,
  AccessPolicy: accessPolicy,
  ServiceAccount: serviceAccount,
  InstallKey: installKey,
};

/** The name of a kind of object: the name of its resource type. */
export type KindName = keyof typeof byKind;

/** All declarative resources, by name. */
export const definitionsByName = byKind as unknown as Readonly<Record<KindName, ResourceDefinition>>;

/** All declarative resources. */
export const definitions: readonly ResourceDefinition[] = Object.values(definitionsByName);
