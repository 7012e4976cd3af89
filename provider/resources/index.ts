import type { ResourceDefinition } from "./definition.ts";
import { deviceTags } from "./deviceTags.ts";
import { member } from "./member.ts";
import { namespace } from "./namespace.ts";
import { publicKey } from "./publicKey.ts";

/** Every declarative resource; engines, schemas, suites and the reference go through this list. */
export const definitions = [
  namespace,
  member,
  publicKey,
  deviceTags,
] as unknown as readonly ResourceDefinition[];
