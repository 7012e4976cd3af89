import { apiKey } from "./apiKey.ts";
import type { ResourceDefinition } from "./definition.ts";
import { device } from "./device.ts";
import { deviceTagAttachment } from "./deviceTagAttachment.ts";
import { deviceTags } from "./deviceTags.ts";
import { firewallRule } from "./firewallRule.ts";
import { member } from "./member.ts";
import { namespace } from "./namespace.ts";
import { publicKey } from "./publicKey.ts";
import { tag } from "./tag.ts";

/** Every declarative resource; engines, schemas, suites and the reference go through this list. */
export const definitions = [
  namespace,
  member,
  publicKey,
  firewallRule,
  apiKey,
  tag,
  deviceTags,
  deviceTagAttachment,
  device,
] as unknown as readonly ResourceDefinition[];
