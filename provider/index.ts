export {
  type DeviceLookup,
  getApiKeys,
  getDevices,
  getFirewallRules,
  getMembers,
  getNamespace,
  getPublicKeys,
  getTags,
  type LookupOptions,
} from "./helpers/lookups.ts";
export {
  getApiKeysOutput,
  getDevicesOutput,
  getFirewallRulesOutput,
  getMembersOutput,
  getNamespaceOutput,
  getPublicKeysOutput,
  getTagsOutput,
  type LookupInputs,
} from "./helpers/outputLookups.ts";
export { cidr, hostname, login } from "./helpers/patterns.ts";
export { sshKeyFile } from "./helpers/sshKeyFile.ts";
export * from "./pulumi/generated/resources.ts";
export type { NamespaceReview, Review } from "./review/report/review.ts";
