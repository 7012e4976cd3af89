import { z } from "zod";
import { namespaceBilling } from "./billing.ts";
import { declaredBy, defineOperation, MALFORMED } from "./operation.ts";
import { FORWARDING_PATTERNS_MAX } from "./patternSize.ts";
import {
  accessEnd,
  addition,
  checkPatterns,
  dateTime,
  email,
  filtering,
  model,
  patternText,
  requestedEnd,
  revision,
  role,
  TOTAL_COUNT,
  tenantId,
  userId,
  ZERO_DATE,
} from "./schemas.ts";
import { userSession } from "./users.ts";

const part = "Namespaces and members";

const change = {
  part,
  auth: ["jwt", "apikey"],
  scope: "path",
  object: "namespace",
  params: { tenant: tenantId },
} as const;
const changeMember = {
  part,
  auth: ["jwt"],
  scope: "path",
  object: "member",
  minRole: "administrator",
} as const;

export const member = model(
  "Member",
  "A user's membership of a namespace",
  z.object({
    id: userId.describe("The ID of the user"),
    added_at: dateTime.describe("The time when the membership was created or the user was invited"),
    expires_at: z
      .union([dateTime, z.literal(ZERO_DATE)])
      .describe("Time at which a pending invitation expires"),
    role: role.describe("The role of the member"),
    type: z.enum(["personal", "team"]).describe("The type of the namespace"),
    status: z.enum(["accepted", "pending"]).describe("The status of the membership"),
    email: z.string().describe("The e-mail address of the user's account"),
    // The expiry of the membership has its own field, because clients read `expires_at` as the expiry of an invitation.
    access_expires_at: accessEnd.describe(
      "The time when the membership expires; omitted if the membership does not expire",
    ),
    revision,
    declared_by: declaredBy,
  }),
);

/** The expiry time of a membership, in a request. */
export const membershipEnd = addition(
  requestedEnd.describe(
    "Time when the membership expires, with an offset. Must be in the future when the member is added",
  ),
);

const announcement = z.string().max(4096);
/** Maximum value of a session's time limits, in minutes: thirty days. */
const MINUTES_MAX = 43_200;
const minutes = z.int().min(0).max(MINUTES_MAX);

/** Maximum value of the size limit of a session's recording, in MiB. */
const MEBIBYTES_MAX = 1024;

/** Maximum number of forwarding rules of a namespace. */
export const FORWARDING_RULES_MAX = 50;

const forwardingRule = z.object({
  login: patternText.describe("Pattern that must match the whole login name"),
  target: patternText.describe(
    "Pattern that must match the whole target, `host:port`; `[address]:port` for IPv6",
  ),
});

/** Checks the patterns of forwarding rules: their total size and their syntax. */
export const checkForwarding = (
  rules: readonly z.output<typeof forwardingRule>[],
  context: z.RefinementCtx,
): void => checkPatterns(rules, ["login", "target"], FORWARDING_PATTERNS_MAX, context);

/** Settings that servers of version 0.19 do not have. */
const ownSettings = {
  device_proof: addition(
    z
      .enum(["optional", "required"])
      .optional()
      .describe(
        "Whether devices must prove that they have their private key when they enroll and report; default: `optional`",
      ),
  ),
  session_max_minutes: addition(
    minutes.optional().describe("Maximum length of a session, in minutes; 0 or omitted: no limit"),
  ),
  session_idle_minutes: addition(
    minutes
      .optional()
      .describe("Minutes without input or output after which a session ends; 0 or omitted: no limit"),
  ),
  session_record_mode: addition(
    z
      .enum(["all", "default", "terminals"])
      .optional()
      .describe(
        "Sessions that `session_record` records. `all`: all shells and commands; `default`: all shells and " +
          "commands except file transfers; `terminals`: only terminals",
      ),
  ),
  session_record_megabytes: addition(
    z
      .int()
      .min(0)
      .max(MEBIBYTES_MAX)
      .optional()
      .describe("Maximum size of a session's recording, in MiB; 0 or omitted: the limit of the server"),
  ),
  session_record_failure: addition(
    z
      .enum(["continue", "end"])
      .optional()
      .describe(
        "The reaction when the service cannot store the output and events of a session for too long. `continue`: the " +
          "session continues, and its recording has a gap; `end`: the session ends. Default: `continue`",
      ),
  ),
  ssh_forwarding: addition(
    z
      .array(forwardingRule)
      .max(FORWARDING_RULES_MAX)
      .superRefine(checkForwarding)
      .optional()
      .describe(
        "Rules for port forwarding through devices: the permitted login names and targets. If omitted, " +
          `forwarding is not permitted. Maximum total size of the patterns: ${FORWARDING_PATTERNS_MAX}`,
      ),
  ),
};

export const namespace = model(
  "Namespace",
  "A tenant: its members, its settings and the devices that enrolled with its id",
  z.object({
    name: z.string(),
    owner: userId,
    tenant_id: tenantId,
    members: z.array(member).describe("The members of the namespace, including the owner"),
    // Do not reorder the settings. A different order would change the revisions of objects, so stored revisions would
    // no longer match.
    settings: z.object({
      session_record: z.boolean(),
      connection_announcement: z.string(),
      ...ownSettings,
    }),
    max_devices: z.int().describe("Maximum number of accepted devices; -1: no limit"),
    device_count: z.int().describe("Number of accepted devices"),
    devices_count: z.int().describe("The same value as `device_count`; older clients use this name"),
    created_at: dateTime,
    billing: z.union([namespaceBilling, z.null()]).describe("Null if the namespace has no customer"),
    type: z.enum(["personal", "team"]).describe("The type of the namespace"),
    revision,
    declared_by: declaredBy,
  }),
);

/** Name of a namespace: one RFC 1123 label (rules section 5.2), stored in lower case. */
export const namespaceName = z
  .string()
  .min(1)
  .max(63)
  .regex(
    /^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?$/,
    "must be one host-name label: letters, digits, inner hyphens",
  );

export const getNamespaces = defineOperation({
  id: "getNamespaces",
  part,
  summary: "List the caller's namespaces. An API key or a workload lists only its own namespace",
  method: "GET",
  path: "/api/namespaces",
  auth: ["jwt", "apikey", "workload"],
  scope: "user",
  query: filtering,
  success: { headers: [TOTAL_COUNT], body: z.array(namespace) },
  errors: { 400: "`filter` is not base64 of a valid filter array" },
});

export const createNamespace = defineOperation({
  id: "createNamespace",
  part,
  summary: "Create a namespace that the caller owns",
  method: "POST",
  path: "/api/namespaces",
  auth: ["jwt"],
  scope: "user",
  object: "namespace",
  creates: true,
  body: z.object({
    name: namespaceName,
    tenant: z.union([tenantId, z.literal("")]).optional(),
    type: z.union([z.enum(["personal", "team"]), z.literal("")]).optional(),
  }),
  idempotencyKey: true,
  success: { body: namespace },
  errors: {
    400: "`name` missing or not a host-name label",
    403: "the user has reached `max_namespaces`, or the operation was called with an API key",
    409: "`name` already in use",
  },
});

export const getNamespace = defineOperation({
  id: "getNamespace",
  part,
  summary: "Get a namespace with its members",
  method: "GET",
  path: "/api/namespaces/{tenant}",
  auth: ["jwt", "apikey"],
  scope: "member",
  object: "namespace",
  minRole: "observer",
  params: { tenant: tenantId },
  success: { body: namespace },
  errors: { 400: MALFORMED, 403: "caller is not a member", 404: "namespace unknown" },
});

export const editNamespace = defineOperation({
  ...change,
  id: "editNamespace",
  summary: "Change the name or the settings of a namespace. Omitted fields do not change",
  method: "PUT",
  path: "/api/namespaces/{tenant}",
  minRole: "administrator",
  body: z.object({
    name: namespaceName.optional(),
    settings: z
      .object({
        session_record: z.boolean().optional(),
        connection_announcement: announcement.optional(),
        ...ownSettings,
      })
      .optional(),
  }),
  success: { body: namespace },
  errors: {
    400: "`name` invalid, or `connection_announcement` longer than 4096 characters",
    403: "caller's role is below `administrator`",
    404: "namespace unknown",
    409: "`name` already in use",
  },
});

export const deleteNamespace = defineOperation({
  ...change,
  id: "deleteNamespace",
  summary: "Delete a namespace and its devices, keys, rules and sessions",
  method: "DELETE",
  path: "/api/namespaces/{tenant}",
  minRole: "owner",
  errors: {
    400: MALFORMED,
    402: "cloud: billing refuses the deletion",
    403: "caller's role is below `owner`",
    404: "namespace unknown",
    424: "cloud: the payment gateway failed; the body is `{message, code}`",
  },
});

export const leaveNamespace = defineOperation({
  id: "leaveNamespace",
  part,
  summary:
    "Leave a namespace. If the token is for this namespace, the response is a session for another " +
    "namespace; otherwise the response is empty",
  method: "DELETE",
  path: "/api/namespaces/{tenant}/members",
  auth: ["jwt"],
  scope: "member",
  object: "member",
  minRole: "observer",
  params: { tenant: tenantId },
  success: { body: userSession, mayBeEmpty: true },
  errors: {
    400: MALFORMED,
    403: "the caller is the owner, is not a member, or uses an API key",
    404: "namespace unknown",
  },
});

export const inviteMember = defineOperation({
  ...changeMember,
  id: "inviteMember",
  summary:
    "Add a member. On a cloud instance, the membership is pending until the user accepts the invitation",
  method: "POST",
  path: "/api/namespaces/{tenant}/members",
  creates: true,
  params: { tenant: tenantId },
  body: z.object({ email, role, access_expires_at: membershipEnd }),
  idempotencyKey: true,
  success: { body: namespace },
  errors: {
    400: "`email` or `role` missing or invalid, or `access_expires_at` not in the future",
    403: "role below `administrator`, the requested role is `owner` or above the caller's role, (cloud) 100 invitations are open, or called with an API key",
    404: "namespace unknown, caller not a member, or (community/enterprise) no user with that e-mail address",
    409: "already a member, or (cloud) a pending invitation is still valid",
  },
});

export const updateMember = defineOperation({
  ...changeMember,
  id: "updateMember",
  summary: "Change a member's role, or the expiry time of the membership",
  method: "PATCH",
  path: "/api/namespaces/{tenant}/members/{uid}",
  params: { tenant: tenantId, uid: userId },
  body: z.object({ role: role.optional(), access_expires_at: membershipEnd }),
  errors: {
    400: "`role` unknown, or `access_expires_at` not a time",
    403: "role below `administrator`, the requested role is `owner` or above the caller's role, the member is the owner, or called with an API key",
    404: "namespace or member unknown",
  },
  repeatable: true,
});

export const removeMember = defineOperation({
  ...changeMember,
  id: "removeMember",
  summary: "Remove a member from a namespace",
  method: "DELETE",
  path: "/api/namespaces/{tenant}/members/{uid}",
  params: { tenant: tenantId, uid: userId },
  success: { body: namespace },
  errors: {
    400: MALFORMED,
    403: "role below `administrator`, the member is the owner or has a higher role than the caller, or called with an API key",
    404: "namespace or member unknown",
  },
});

export const setSessionRecord = defineOperation({
  ...change,
  id: "setSessionRecord",
  summary: "Turn session recording on or off (older form of `editNamespace`)",
  method: "PUT",
  path: "/api/users/security/{tenant}",
  minRole: "administrator",
  body: z.object({ session_record: z.boolean().default(false) }),
  errors: {
    400: MALFORMED,
    403: "caller's role is below `administrator`",
    404: "namespace unknown",
  },
});
