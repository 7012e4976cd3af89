export {
  type DeviceLookup,
  getApiKeys,
  getApiKeysOutput,
  getDevices,
  getDevicesOutput,
  getFirewallRules,
  getFirewallRulesOutput,
  getMembers,
  getMembersOutput,
  getNamespace,
  getNamespaceOutput,
  getPublicKeys,
  getPublicKeysOutput,
  getTags,
  getTagsOutput,
  type LookupInputs,
  type LookupOptions,
  type NamespaceLookup,
} from "./helpers/lookups.ts";
export { cidr, hostname, login } from "./helpers/patterns.ts";
export { sshKeyFile } from "./helpers/sshKeyFile.ts";
export {
  type GithubJobs,
  type GitlabJobs,
  githubActions,
  gitlabCi,
  type KubernetesAccount,
  kubernetes,
  type WorkloadTokens,
} from "./helpers/workloads.ts";
export * from "./providers/dynamic/generated/resources.ts";
export type { NamespaceReview, Review } from "./review/report/review.ts";
