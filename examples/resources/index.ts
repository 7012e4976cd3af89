// A Pulumi program with the examples of this folder. Each file is a separate example. The program omits the examples
// `accessPolicy`, `serviceAccount` and `installKey`, because they need ShellHub 0.27 or later.
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
export * from "./trustedWorkload";

/** The secret is encrypted in the state. Print it with `pulumi stack output --show-secrets`. */
export const ciKey = ci.key;
