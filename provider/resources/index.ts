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

/** All declarative resources. */
export const definitions = [
  namespace,
  member,
  publicKey,
  firewallRule,
  apiKey,
  trustedWorkload,
  tag,
  deviceTags,
  deviceTagAttachment,
  device,
  accessPolicy,
  serviceAccount,
  installKey,
] as unknown as readonly ResourceDefinition[];
