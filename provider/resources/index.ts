import type { ResourceDefinition } from "../model/definition.ts";
import type { Kind } from "../model/kind.ts";
import { accessPolicy } from "./accessPolicy.ts";
import { apiKey } from "./apiKey/index.ts";
import { device } from "./device.ts";
import { deviceTagAttachment } from "./deviceTagAttachment.ts";
import { deviceTags } from "./deviceTags.ts";
import { firewallRule } from "./firewallRule.ts";
import { installKey } from "./installKey/index.ts";
import { member } from "./member/index.ts";
import { namespace } from "./namespace/index.ts";
import { publicKey } from "./publicKey.ts";
import { serviceAccount } from "./serviceAccount.ts";
import { tag } from "./tag.ts";
import { trustedWorkload } from "./trustedWorkload.ts";

/** All kinds of objects by name, in the order in which reports show them. */
const byName = {
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
} satisfies Readonly<Record<string, Kind>>;

/** The name of a kind of object: the name of its resource type. */
export type KindName = keyof typeof byName;

/** All kinds of objects, in the order in which reports show them. */
export const kinds: readonly Kind[] = Object.values(byName);

/** All declarative resources, by name. */
export const definitionsByName = Object.fromEntries(
  Object.entries(byName).map(([name, { definition }]) => [name, definition]),
) as unknown as Readonly<Record<KindName, ResourceDefinition>>;

/** The definitions of all resource types, in the order of {@link kinds}. */
export const definitions: readonly ResourceDefinition[] = kinds.map(({ definition }) => definition);

/**
 * Returns the kind with this name.
 * @throws Error if no kind has the name
 */
export function kindNamed(name: string): Kind {
  if (Object.hasOwn(byName, name)) return byName[name as KindName];
  throw new Error(`there is no kind of object with the name ${name}`);
}

/** Returns the kind of an object, or of the object that a step changes. */
export const kindOf = ({ definition: { name } }: { readonly definition: { readonly name: string } }): Kind =>
  kindNamed(name);

/** Returns the kinds for which a property of {@link Kind} is defined, in the order in which reports show them. */
export const kindsWith = <P extends keyof Kind>(
  part: P,
): readonly (Kind & { readonly [K in P]: NonNullable<Kind[K]> })[] =>
  kinds.filter(
    (kind): kind is Kind & { readonly [K in P]: NonNullable<Kind[K]> } => kind[part] !== undefined,
  );
