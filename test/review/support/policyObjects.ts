import type {
  AccessDevice,
  AccessKey,
  AccessPolicy,
  AccessRule,
  Principal,
  SshIdentity,
} from "../../../sdk/policy/index.ts";

/** Returns a device without tags, whose uid is its name. */
export const accessDevice = (name: string, ...tags: string[]): AccessDevice => ({ uid: name, name, tags });

/** Returns a key that admits every login on every device, and whose fingerprint is its name. */
export const accessKey = (name: string, more: Partial<AccessKey> = {}): AccessKey => ({
  fingerprint: name,
  name,
  username: "",
  filter: {},
  ...more,
});

/** Returns a rule that denies every login. */
export const accessRule = (id: string, more: Partial<AccessRule> = {}): AccessRule => ({
  id,
  action: "deny",
  active: true,
  priority: 1,
  sourceIp: "",
  username: "",
  filter: {},
  ...more,
});

/** Returns an access policy that admits all members as root on every device, and whose id is its name. */
export const accessPolicy = (name: string, more: Partial<AccessPolicy> = {}): AccessPolicy => ({
  id: name,
  name,
  subject: { type: "all-members", value: "" },
  filter: {},
  logins: ["root"],
  sourceIps: [],
  action: "allow",
  requireReauth: false,
  reauthPeriod: null,
  ...more,
});

/** Returns an SSH key of a principal, without an end. */
export const sshKey = (name: string, more: Partial<SshIdentity> = {}): SshIdentity => ({
  fingerprint: `SHA256:${name}`,
  expiresAt: null,
  consumedAt: null,
  lastReauthAt: null,
  ...more,
});

/** Returns a user with one SSH key. */
export const user = (name: string, more: Partial<Principal> = {}): Principal => ({
  id: `id-${name}`,
  name: `${name}@example.com`,
  kind: "user",
  role: "operator",
  keys: [sshKey(name)],
  ...more,
});

/** Returns a service account with one SSH key. */
export const serviceAccount = (name: string, more: Partial<Principal> = {}): Principal => ({
  ...user(name),
  name,
  kind: "service account",
  role: "service",
  ...more,
});
