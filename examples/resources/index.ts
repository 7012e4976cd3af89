// One program of all examples; each file stands for itself.
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

/** Encrypted in the state, and shown by `pulumi stack output --show-secrets` only. */
export const ciKey = ci.key;
