// A Pulumi program with all examples of this folder. Each file is a separate example.
import { ci } from "./apiKey";

export * from "./device";
export * from "./deviceTagAttachment";
export * from "./deviceTags";
export * from "./firewallRule";
export * from "./helpers";
export * from "./member";
export * from "./namespace";
export * from "./publicKey";
export * from "./tag";

/** The secret is encrypted in the state. Print it with `pulumi stack output --show-secrets`. */
export const ciKey = ci.key;
