import type { KindName } from "../resources/index.ts";
import { accessPolicy } from "./accessPolicy.ts";
import { apiKey } from "./apiKey.ts";
import { device } from "./device.ts";
import { deviceTagAttachment } from "./deviceTagAttachment.ts";
import { deviceTags } from "./deviceTags.ts";
import { firewallRule } from "./firewallRule.ts";
import { installKey } from "./installKey.ts";
import type { Kind } from "./kind.ts";
import { member } from "./member.ts";
import { namespace } from "./namespace.ts";
import { publicKey } from "./publicKey.ts";
import { serviceAccount } from "./serviceAccount.ts";
import { tag } from "./tag.ts";
import { trustedWorkload } from "./trustedWorkload.ts";

/** The meaning of each kind of object, by the name of its resource type. Reports list the kinds in this order. */
export const kinds: Readonly<Record<KindName, Kind>> = {
  Namespace: namespace,
  Member: member,
  PublicKey: publicKey,
  FirewallRule: firewallRule,
  AccessPolicy: accessPolicy,
  ServiceAccount: serviceAccount,
  InstallKey: installKey,
  ApiKey: apiKey,
  TrustedWorkload: trustedWorkload,
  Tag: tag,
  Device: device,
  DeviceTags: deviceTags,
  DeviceTagAttachment: deviceTagAttachment,
};

/** Returns the meaning of a definition's kind. */
export const kindOf = ({ definition }: { readonly definition: { readonly name: string } }): Kind =>
  kinds[definition.name as KindName];

/** Returns the kinds that have a part, in the order of reports. */
export const kindsWith = <P extends keyof Kind>(
  part: P,
): readonly (Kind & { readonly [K in P]: NonNullable<Kind[K]> })[] =>
  Object.values(kinds).filter(
    (kind): kind is Kind & { readonly [K in P]: NonNullable<Kind[K]> } => kind[part] !== undefined,
  );
