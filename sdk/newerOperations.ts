import { z } from "zod";
import {
  dateTime,
  defineOperation,
  paging,
  role,
  sorting,
  TOTAL_COUNT,
  wireFilter,
} from "./contract/index.ts";

// Operations that exist only on servers newer than the contract. Response fields are strings instead of enums, so that
// the client can also parse values that later servers add.

const members = { part: "Namespaces and members", scope: "path" } as const;
const ofNamespace = { tenant: z.string() };

/** Lists the invitations of a namespace, for servers that list invitations separately from members. */
export const listInvitations = defineOperation({
  ...members,
  auth: ["jwt"],
  id: "listInvitations",
  summary: "List the invitations of a namespace",
  method: "GET",
  path: "/api/namespaces/{tenant}/invitations",
  params: ofNamespace,
  query: paging,
  success: {
    headers: [TOTAL_COUNT],
    body: z.array(
      z.object({
        created_at: dateTime,
        expires_at: dateTime,
        status: z.string(),
        role,
        user: z.object({ id: z.string(), email: z.string() }),
      }),
    ),
  },
});

/** Withdraws an invitation. */
export const cancelInvitation = defineOperation({
  ...members,
  auth: ["jwt"],
  id: "cancelInvitation",
  summary: "Withdraw an invitation",
  method: "DELETE",
  path: "/api/namespaces/{tenant}/invitations/{uid}",
  params: { ...ofNamespace, uid: z.string() },
});

/** Lists the users who are members of a namespace. The list does not contain service accounts. */
export const listMembers = defineOperation({
  ...members,
  auth: ["jwt", "apikey"],
  id: "listMembers",
  summary: "List the users who are members of a namespace",
  method: "GET",
  path: "/api/namespaces/{tenant}/members",
  params: ofNamespace,
  success: {
    body: z.array(
      z.object({
        id: z.string(),
        name: z.string(),
        username: z.string(),
        email: z.string(),
        role: z.string(),
        status: z.string(),
        added_at: dateTime,
      }),
    ),
  },
});

/** Sets the access mode of a namespace. */
export const setSshAccessMode = defineOperation({
  ...members,
  auth: ["jwt", "apikey"],
  minRole: "administrator",
  id: "setSshAccessMode",
  summary: "Set the access mode of a namespace",
  method: "PUT",
  path: "/api/namespaces/ssh-access-mode/{tenant}",
  params: ofNamespace,
  body: z.object({ ssh_access_mode: z.string() }),
});

const identityMode = {
  part: "Access policies",
  auth: ["jwt", "apikey"],
  minRole: "administrator",
  scope: "namespace",
} as const;
const byId = { id: z.string() };

const policyInput = z.object({
  name: z.string(),
  subject: z.object({ type: z.string(), value: z.string() }),
  filter: wireFilter,
  logins: z.array(z.string()),
  source_ip: z.array(z.string()),
  action: z.string(),
  require_reauth: z.boolean(),
  reauth_period: z.int().nullable(),
});

const policy = policyInput.extend({ id: z.string(), created_at: dateTime, updated_at: dateTime });

const policies = { ...identityMode, path: "/api/access-policies" } as const;
const ofPolicy = { ...identityMode, path: "/api/access-policies/{id}", params: byId } as const;

/** Lists all access policies of a namespace, in no fixed order. */
export const listAccessPolicies = defineOperation({
  ...policies,
  id: "listAccessPolicies",
  summary: "List the access policies of the namespace",
  method: "GET",
  success: { body: z.array(policy) },
});

/** Creates an access policy. */
export const createAccessPolicy = defineOperation({
  ...policies,
  id: "createAccessPolicy",
  summary: "Create an access policy",
  method: "POST",
  body: policyInput,
  success: { body: policy },
});

/** Returns an access policy. */
export const getAccessPolicy = defineOperation({
  ...ofPolicy,
  id: "getAccessPolicy",
  summary: "Get an access policy",
  method: "GET",
  success: { body: policy },
});

/** Replaces all fields of an access policy. An omitted field gets its default. */
export const updateAccessPolicy = defineOperation({
  ...ofPolicy,
  id: "updateAccessPolicy",
  summary: "Replace all fields of an access policy",
  method: "PUT",
  body: policyInput,
  success: { body: policy },
});

/** Deletes an access policy. */
export const deleteAccessPolicy = defineOperation({
  ...ofPolicy,
  id: "deleteAccessPolicy",
  summary: "Delete an access policy",
  method: "DELETE",
});

const sshIdentity = z.object({
  id: z.string(),
  principal_id: z.string(),
  principal_name: z.string(),
  principal_email: z.string(),
  principal_type: z.string(),
  fingerprint: z.string().describe("SHA256 fingerprint of the key"),
  name: z.string(),
  source: z.string(),
  created_at: dateTime,
  last_used_at: dateTime.nullable(),
  last_reauth_at: dateTime.nullable(),
  expires_at: dateTime.nullable(),
  single_use: z.boolean(),
  consumed_at: dateTime.nullable(),
});

/** Lists the SSH keys with which users and service accounts log in. */
export const listSshIdentities = defineOperation({
  ...identityMode,
  // The server answers 401 to API keys.
  auth: ["jwt"],
  minRole: null,
  id: "listSshIdentities",
  summary: "List the caller's SSH keys, or for owners and administrators the SSH keys of all principals",
  method: "GET",
  path: "/api/ssh-identities",
  query: { all: z.boolean().optional() },
  success: { body: z.array(sshIdentity) },
});

const serviceAccount = z.object({
  id: z.string(),
  name: z.string(),
  created_at: dateTime,
  identities: z.array(sshIdentity).nullable(),
});

const serviceAccounts = { ...identityMode, path: "/api/service-accounts" } as const;

/** Lists all service accounts of a namespace, in the order of their creation. */
export const listServiceAccounts = defineOperation({
  ...serviceAccounts,
  id: "listServiceAccounts",
  summary: "List the service accounts of the namespace",
  method: "GET",
  success: { body: z.array(serviceAccount) },
});

/** Creates a service account with its SSH key. */
export const createServiceAccount = defineOperation({
  ...serviceAccounts,
  id: "createServiceAccount",
  summary: "Create a service account with its SSH key",
  method: "POST",
  body: z.object({
    name: z.string(),
    data: z.string().describe("The public key, as a line in OpenSSH format"),
    single_use: z.boolean(),
    expires_in: z.int().optional().describe("Days until the key expires"),
  }),
  success: { body: serviceAccount },
});

/** Deletes a service account and its SSH key. */
export const deleteServiceAccount = defineOperation({
  ...serviceAccounts,
  path: "/api/service-accounts/{id}",
  params: byId,
  id: "deleteServiceAccount",
  summary: "Delete a service account",
  method: "DELETE",
});

const installKeys = {
  part: "Devices and agents",
  auth: ["jwt"],
  minRole: "administrator",
  scope: "namespace",
  path: "/api/namespaces/install-key",
} as const;

const installKeyInput = z.object({
  name: z.string(),
  mode: z.string(),
  allowed_macs: z.array(z.string()),
  webhook_url: z.string(),
  webhook_secret: z.string().optional(),
  webhook_timeout: z.int().describe("Seconds; 0 is the server's default"),
  webhook_callback_ttl: z.int().describe("Seconds; 0 is the server's default"),
  usage_limit: z.int(),
  ephemeral: z.boolean(),
  ephemeral_timeout: z.int().optional().describe("Minutes"),
  tags: z.array(z.string()),
  expires_in: z.int().nullable().optional().describe("Days until the key expires; null: never"),
});

/** Lists install keys, including the two system keys and revoked keys. */
export const listInstallKeys = defineOperation({
  ...installKeys,
  id: "listInstallKeys",
  summary: "List the install keys of the namespace",
  method: "GET",
  query: { ...paging, ...sorting },
  success: {
    headers: [TOTAL_COUNT],
    body: z.array(
      installKeyInput.omit({ webhook_secret: true, expires_in: true, ephemeral_timeout: true }).extend({
        id: z.string().describe("SHA-256 of the key, in hexadecimal form"),
        ephemeral_timeout: z.int(),
        used_times: z.int(),
        last_used_at: dateTime.nullable(),
        revoked: z.boolean(),
        disabled: z.boolean(),
        type: z.string(),
        key_hint: z.string(),
        created_by: z.string(),
        created_at: dateTime,
        updated_at: dateTime,
        expires_at: dateTime.nullable(),
      }),
    ),
  },
});

/** Creates an install key. The response contains the key itself. Later, only {@link revealInstallKey} returns it. */
export const createInstallKey = defineOperation({
  ...installKeys,
  id: "createInstallKey",
  summary: "Create an install key",
  method: "POST",
  body: installKeyInput,
  success: { body: z.object({ key: z.string(), name: z.string(), created_at: dateTime }) },
});

/** Changes an install key. Fields that the request omits do not change. A revoked key cannot be changed. */
export const updateInstallKey = defineOperation({
  ...installKeys,
  path: "/api/namespaces/install-key/{name}",
  params: { name: z.string() },
  id: "updateInstallKey",
  summary: "Change only the fields of an install key that the request contains",
  method: "PATCH",
  body: installKeyInput.extend({ revoked: z.boolean(), disabled: z.boolean() }).partial(),
});

/** Returns the key itself of an install key, if a user created the install key. */
export const revealInstallKey = defineOperation({
  ...installKeys,
  path: "/api/namespaces/install-key/{name}/reveal",
  params: { name: z.string() },
  id: "revealInstallKey",
  summary: "Return the key of an install key",
  method: "GET",
  success: { body: z.object({ key: z.string() }) },
});

/** All operations that exist only on servers newer than the contract, by id. */
export const newerOperations = {
  listInvitations,
  cancelInvitation,
  listMembers,
  setSshAccessMode,
  listAccessPolicies,
  createAccessPolicy,
  getAccessPolicy,
  updateAccessPolicy,
  deleteAccessPolicy,
  listSshIdentities,
  listServiceAccounts,
  createServiceAccount,
  deleteServiceAccount,
  listInstallKeys,
  createInstallKey,
  updateInstallKey,
  revealInstallKey,
} as const;
