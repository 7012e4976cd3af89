import type { KindName } from "./index.ts";

/**
 * The kinds of objects that `import` declares. They are listed here, because the help of the command needs only their
 * names, and the modules of the kinds take time to load.
 */
export const IMPORTED_KINDS = [
  "Namespace",
  "Member",
  "PublicKey",
  "FirewallRule",
  "ApiKey",
  "TrustedWorkload",
  "DeviceTags",
  "AccessPolicy",
  "ServiceAccount",
  "InstallKey",
] as const satisfies readonly KindName[];
