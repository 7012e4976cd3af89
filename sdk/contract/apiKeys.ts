import { z } from "zod";
import { declaredBy, defineOperation } from "./operation.ts";
import {
  dateTime,
  model,
  paging,
  revision,
  role,
  sorting,
  TOTAL_COUNT,
  tenantId,
  userId,
} from "./schemas.ts";

const part = "API keys";
const ROLE_TOO_HIGH =
  "role below `administrator`, the requested role is higher than the caller's role, or called with an API key";
const UNKNOWN = "no key with that name in the namespace";

const write = {
  part,
  auth: ["jwt"],
  scope: "namespace",
  object: "apiKey",
  minRole: "administrator",
} as const;

const shape = {
  tenant_id: tenantId,
  created_by: userId.describe("The id of the user who created the key"),
  role: role.describe("The role of the key"),
  name: z.string().describe("The name of the key"),
  expires_in: z.int().describe("Expiry time of the key, as a Unix timestamp in seconds; -1: never"),
  created_at: dateTime.describe("The time when the key was created"),
  updated_at: dateTime.describe("The time when the key was last changed"),
  revision,
  declared_by: declaredBy,
};

export const apiKey = model("ApiKey", "An API key without its secret", z.object(shape));

export const apiKeyCreated = model(
  "ApiKeyCreated",
  "A new API key with its secret. No other response contains the secret",
  z.object({
    id: z.string().describe("The secret of the key"),
    ...shape,
    created_by: userId
      .optional()
      .describe("Id of the user who created the key; some servers send `user_id` instead"),
    user_id: userId.optional().describe("The same value as `created_by`; some servers use this name"),
  }),
);

/** Allowed lifetimes of an API key in days; -1: no expiry (rules section 15.2). */
export const API_KEY_DAYS = [-1, 30, 60, 90, 365] as const;

const name = z.string().min(3).max(20).regex(/^\S+$/, "must not contain white space");
// Role of the new key. If the role is empty, the key gets the caller's role (rules section 15.3).
const optionalRole = z.union([role, z.literal("")]).optional();

export const createApiKey = defineOperation({
  ...write,
  id: "createApiKey",
  summary: "Create an API key. Only this response contains the secret of the key",
  method: "POST",
  path: "/api/namespaces/api-key",
  creates: true,
  body: z.object({
    name,
    expires_at: z.literal(API_KEY_DAYS).describe("Days until the key expires; -1: never"),
    role: optionalRole,
    key: z
      .union([z.uuidv4(), z.literal("")])
      .optional()
      .describe("The secret of the key. If it is empty, the service creates a random secret"),
  }),
  idempotencyKey: true,
  success: { body: apiKeyCreated },
  errors: {
    400: "`name` is not 3 to 20 characters long or contains white space, `expires_at` is not -1, 30, 60, 90 or 365, `key` is not a version 4 UUID, or `role` is unknown",
    403: ROLE_TOO_HIGH,
    404: "namespace unknown",
    409: "`name` or `key` already in use in the namespace",
  },
});

export const listApiKeys = defineOperation({
  id: "listApiKeys",
  part,
  summary: "List the namespace's API keys, without their secrets",
  method: "GET",
  path: "/api/namespaces/api-key",
  auth: ["jwt", "apikey"],
  scope: "namespace",
  minRole: "observer",
  query: { ...paging, order_by: sorting.order_by, sort_by: sorting.sort_by },
  success: { headers: [TOTAL_COUNT], body: z.array(apiKey) },
  errors: { 400: "`order_by` neither `asc` nor `desc`", 403: "the user's token is not for a namespace" },
});

export const updateApiKey = defineOperation({
  ...write,
  id: "updateApiKey",
  summary: "Rename an API key or change its role",
  method: "PATCH",
  path: "/api/namespaces/api-key/{key}",
  params: { key: z.string().min(1).max(64) },
  body: z.object({ name: name.optional(), role: optionalRole }),
  errors: {
    400: "`name` or `role` invalid",
    403: ROLE_TOO_HIGH,
    404: UNKNOWN,
    409: "another key has the new name",
  },
});

export const deleteApiKey = defineOperation({
  ...write,
  id: "deleteApiKey",
  summary: "Revoke an API key immediately",
  method: "DELETE",
  path: "/api/namespaces/api-key/{key}",
  params: { key: z.string().min(1).max(64) },
  errors: { 403: "role below `administrator`, or called with an API key", 404: UNKNOWN },
});
