import { z } from "zod";
import { declaredBy, defineOperation } from "./operation.ts";
import {
  accessEnd,
  addition,
  dateTime,
  email,
  filter,
  filtering,
  fingerprint,
  model,
  pattern,
  requestedEnd,
  revision,
  TOTAL_COUNT,
  tag,
  tags,
  tenantId,
  userId,
  wireFilter,
} from "./schemas.ts";

const part = "Public keys";
const NO_NAMESPACE = "the user's token is not for a namespace";
const NOT_ADMINISTRATOR = "caller's role is below `administrator`";

const common = { part, auth: ["jwt", "apikey"], scope: "namespace" } as const;
const write = { ...common, object: "publicKey", minRole: "administrator" } as const;

export const publicKey = model(
  "PublicKey",
  "An SSH public key. It admits logins with matching login names on matching devices",
  z.object({
    data: z.string().describe("Base64 of the normalized authorized_keys line"),
    fingerprint,
    created_at: dateTime,
    tenant_id: tenantId,
    name: z.string(),
    username: z.string(),
    filter: wireFilter,
    expires_at: accessEnd,
    owner: userId
      .optional()
      .describe(
        "The ID of the user to whom the key belongs. The key admits logins only while the user is a member",
      ),
    owner_email: email
      .optional()
      .describe(
        "The e-mail address of the owner's account. Returned only in lists for administrators, and only if the owner is not a member. If the owner becomes a member again, the key admits logins again",
      ),
    revision,
    declared_by: declaredBy,
  }),
);

// Do not reorder these fields. A different order would change the revisions of objects, so stored revisions would no
// longer match.
const settings = {
  name: z.string().min(1).max(255),
  username: pattern.describe("Pattern that the login name must match"),
  filter,
  expires_at: addition(requestedEnd),
  owner: addition(
    userId
      .nullable()
      .optional()
      .describe(
        "ID of a member. If an update omits the field, the owner does not change; null removes the owner",
      ),
  ),
};

export const getPublicKeys = defineOperation({
  ...common,
  id: "getPublicKeys",
  summary: "List the namespace's keys, oldest first",
  method: "GET",
  path: "/api/sshkeys/public-keys",
  minRole: "observer",
  query: filtering,
  success: { headers: [TOTAL_COUNT], body: z.array(publicKey) },
  errors: { 400: "`filter` is not base64 of a valid filter array", 403: NO_NAMESPACE },
});

export const createPublicKey = defineOperation({
  ...write,
  id: "createPublicKey",
  summary: "Create a key",
  method: "POST",
  path: "/api/sshkeys/public-keys",
  creates: true,
  body: z.object({
    data: z.base64().min(1).max(32_768).describe("Base64 of an authorized_keys line"),
    ...settings,
  }),
  idempotencyKey: true,
  success: { body: publicKey },
  errors: {
    400: "a field is missing, a regular expression is invalid, `filter` does not have exactly one of `hostname` and `tags`, `data` is not an OpenSSH public key or has the type `ssh-dss` (clients cannot log in with this type), `expires_at` is not in the future, or `owner` is not a member",
    403: NOT_ADMINISTRATOR,
    404: "a filter tag does not exist in the namespace",
    409: "a key with the same fingerprint already exists in the namespace",
  },
});

export const updatePublicKey = defineOperation({
  ...write,
  id: "updatePublicKey",
  summary: "Replace the settings of a key",
  method: "PUT",
  path: "/api/sshkeys/public-keys/{fingerprint}",
  params: { fingerprint },
  body: z.object(settings),
  success: { body: publicKey },
  errors: {
    400: "a field is missing, a regular expression is invalid, `filter` does not have exactly one of `hostname` and `tags`, or `owner` is not a member",
    403: NOT_ADMINISTRATOR,
    404: "no such key in the namespace, or a filter tag does not exist",
  },
});

export const deletePublicKey = defineOperation({
  ...write,
  id: "deletePublicKey",
  summary: "Delete a key",
  method: "DELETE",
  path: "/api/sshkeys/public-keys/{fingerprint}",
  params: { fingerprint },
  errors: { 403: NOT_ADMINISTRATOR, 404: "no such key in the namespace" },
});

export const addPublicKeyTag = defineOperation({
  ...write,
  id: "addPublicKeyTag",
  summary: "Add a tag to the filter of a key",
  method: "POST",
  path: "/api/sshkeys/public-keys/{fingerprint}/tags",
  params: { fingerprint },
  body: z.object({ tag }),
  errors: {
    400: "`tag` invalid, or the key has a `hostname` filter",
    403: "role below `administrator`, or the key already has 3 tags",
    404: "no such key, or the tag does not exist in the namespace",
    409: "the filter already has the tag",
  },
});

export const updatePublicKeyTags = defineOperation({
  ...write,
  id: "updatePublicKeyTags",
  summary: "Replace all tags of the filter of a key",
  method: "PUT",
  path: "/api/sshkeys/public-keys/{fingerprint}/tags",
  params: { fingerprint },
  body: z.object({ tags }),
  errors: {
    400: "`tags` not 1 to 3 different, valid tags",
    403: NOT_ADMINISTRATOR,
    404: "no such key, the key has a `hostname` filter, or a tag does not exist",
  },
});

export const removePublicKeyTag = defineOperation({
  ...write,
  id: "removePublicKeyTag",
  summary: "Remove a tag from the filter of a key",
  method: "DELETE",
  path: "/api/sshkeys/public-keys/{fingerprint}/tags/{tag}",
  params: { fingerprint, tag },
  errors: {
    400: "the key has a `hostname` filter, or the tag is the last tag in the filter",
    403: NOT_ADMINISTRATOR,
    404: "no such key, or its filter does not have the tag",
  },
});
