import { z } from "zod";
import { declaredBy, defineOperation, MALFORMED } from "./operation.ts";
import {
  addition,
  dateTime,
  filtering,
  fingerprint,
  model,
  revision,
  sorting,
  TOTAL_COUNT,
  tag,
  tags,
  tenantId,
  uid,
} from "./schemas.ts";

const part = "Devices and agents";
const BELOW_OPERATOR = "caller's role is below `operator`";
const UNKNOWN = "no such device in the namespace";

const common = { part, auth: ["jwt", "apikey"], scope: "namespace" } as const;
const write = { ...common, object: "device", minRole: "operator" } as const;
const writeTags = { ...write, object: "deviceTags" } as const;

/** Statuses of a device, including the statuses during its enrollment. */
export const DEVICE_STATUSES = ["accepted", "rejected", "pending", "removed", "unused"] as const;

const deviceInfo = z.object({
  id: z.string().max(255).describe("Operating system id"),
  pretty_name: z.string().max(255),
  version: z.string().max(64).describe("Agent version"),
  arch: z.string().max(64),
  platform: z.string().max(64).describe("`native`, `docker`, `bundle`, `connector`, …"),
});

export const device = model(
  "Device",
  "A machine that runs an agent",
  z.object({
    uid,
    name: z.string(),
    identity: z
      .object({ mac: z.string().describe("The MAC address of the device") })
      .describe("The identity of the device"),
    info: deviceInfo,
    public_key: z
      .string()
      .describe(
        "Public key of the device, PEM. Empty for observers: the device authenticates to the service with " +
          "this key, so observers must not read it",
      ),
    tenant_id: tenantId,
    last_seen: dateTime,
    online: z.boolean(),
    namespace: z.string().describe("Namespace name"),
    status: z.enum(DEVICE_STATUSES),
    status_update_at: dateTime.describe("The time when the status last changed"),
    status_updated_at: dateTime.describe("The same value as `status_update_at`; older clients use this name"),
    created_at: dateTime,
    remote_addr: z.string().describe("The IP address of the agent's last report"),
    position: z
      .object({
        latitude: z.number().describe("The latitude in degrees"),
        longitude: z.number().describe("The longitude in degrees"),
      })
      .describe("The geographic position of the device"),
    tags: z.array(z.string()),
    public_url: z.boolean().describe("Whether the device has a public URL"),
    acceptable: z.boolean().describe("Whether the device can currently be accepted"),
    revision,
    tags_revision: revision.describe("Revision of the device's tags, which are declared separately"),
    declared_by: declaredBy,
    tags_declared_by: declaredBy,
    transport: z
      .int()
      .nullable()
      .optional()
      .describe(
        "Version of the protocol in the last tunnel of the device's agent: 1 or 2. Null if the agent has never opened " +
          "a tunnel",
      ),
  }),
);

export const deviceAuth = model(
  "DeviceAuth",
  "The response to an agent that enrolls or reports",
  z.object({
    uid,
    token: z.string(),
    name: z.string(),
    namespace: z.string(),
    agent_key: z
      .string()
      .describe(
        "Public key that the service uses to log in to agents (base64, as in authorized_keys). Agents pin " +
          "this key. Present only if the agent sent a valid `proof`",
      )
      .optional(),
  }),
);

/** Name of a device, stored in lower case (rules section 20). */
export const deviceName = z
  .string()
  .min(1)
  .max(64)
  .regex(/^[a-zA-Z0-9_-]+$/, "may contain letters, digits, _ and -");

// JSON Schemas that express the `refine` rule of the body of `authDevice` in the OpenAPI document. JSON Schema cannot
// contain the rule's function.
const HAS_HOSTNAME = { required: ["hostname"], properties: { hostname: { minLength: 1 } } };
const HAS_MAC = {
  required: ["identity"],
  properties: { identity: { type: "object", properties: { mac: { minLength: 1 } } } },
};

/**
 * Returns the string that a device signs to prove that it has the private key. The first line of the string prevents
 * the signature from being used for any other purpose.
 */
export const proofText = (tenant: string, challenge: string): string =>
  `gatehouse device proof 1\n${tenant}\n${challenge}`;

export const challengeDevice = defineOperation({
  id: "challengeDevice",
  part,
  summary:
    "Get a challenge. An agent signs the challenge when it enrolls or reports, to prove that it has the " +
    "device's private key",
  method: "POST",
  path: "/api/devices/challenge",
  auth: ["none"],
  scope: "public",
  success: { body: z.object({ challenge: z.string().describe("Valid for one minute") }) },
  repeatable: true,
  limit: { kind: "report" },
});

export const authDevice = defineOperation({
  id: "authDevice",
  part,
  summary:
    "Enroll a device or report its state. A device that is already enrolled keeps its name, status and tags",
  method: "POST",
  path: "/api/devices/auth",
  aliases: ["/api/auth/device"],
  auth: ["none"],
  scope: "public",
  body: z
    .object({
      info: deviceInfo,
      sessions: z.array(z.string().max(64)).max(1000).nullish().describe("Uids of open sessions"),
      hostname: z.union([deviceName, z.literal("")]).optional(),
      identity: z.object({ mac: z.string().max(64) }).nullish(),
      public_key: z.string().min(1).max(4096).describe("PEM"),
      tenant_id: tenantId,
      proof: addition(
        z
          .object({
            challenge: z.string().min(1).max(2048).describe("From `challengeDevice`"),
            signature: z
              .base64()
              .min(1)
              .max(2048)
              .describe(
                "Signature of the challenge's proof string with the device's private key: RSA PKCS #1 " +
                  "v1.5 with SHA-256",
              ),
          })
          .optional()
          .describe(
            "Proves that the agent has the private key. Without a proof, the token cannot change or record " +
              "sessions",
          ),
      ),
    })
    .meta({ anyOf: [HAS_HOSTNAME, HAS_MAC] })
    .refine(
      (body) => body.hostname || body.identity?.mac,
      "must have at least one of hostname and identity.mac",
    ),
  success: { body: deviceAuth },
  errors: {
    400: "a required field is missing or invalid, or `hostname` and `identity.mac` are both missing",
    401: "listed in the specification; this service does not return this status, because the operation requires no token",
    403:
      "the device is new, and the namespace has reached its maximum number of pending devices; " +
      "the proof is wrong; or the namespace requires a proof",
    404: "`tenant_id` unknown",
  },
  repeatable: true,
  // The default limit is too small for a report with a thousand session uids and a public key.
  bodyLimit: 128 * 1024,
  limit: { kind: "report" },
});

export const signature = model(
  "Signature",
  "A signature with a private key of the service",
  z.object({ signature: z.base64().describe("Signature in base64: RSA PKCS#1 v1.5 with SHA-256") }),
);

export const authSshPublicKey = defineOperation({
  id: "authSshPublicKey",
  part,
  summary:
    "Sign a string with the private key that the service created for a login to the device. The signature " +
    "identifies the key to the agent",
  method: "POST",
  path: "/api/auth/ssh",
  auth: ["device", "jwt", "apikey"],
  scope: "device",
  minRole: "observer",
  body: z.object({
    fingerprint,
    // The data that an SSH client signs to log in contains control characters (RFC 4252, section 7). The service must
    // never sign such data, because a device could use the signature to log in to another device.
    data: z
      .string()
      .min(1)
      .max(4096)
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern rejects control characters
      .regex(/^[^\u0000-\u001f\u007f-\u009f]*$/, "must not contain control characters")
      .describe("String to sign"),
  }),
  success: { body: signature },
  errors: { 400: "field missing", 404: "no private key with that fingerprint" },
  repeatable: true,
});

export const offlineDevice = defineOperation({
  id: "offlineDevice",
  part,
  summary: "Mark a device as offline until its next report",
  method: "POST",
  path: "/internal/devices/{uid}/offline",
  auth: ["internal", "device", "jwt", "apikey"],
  scope: "device",
  minRole: "operator",
  params: { uid },
  errors: { 404: "device unknown" },
  repeatable: true,
});

export const getDevices = defineOperation({
  ...common,
  id: "getDevices",
  summary: "List the namespace's devices",
  method: "GET",
  path: "/api/devices",
  minRole: "observer",
  query: {
    ...filtering,
    status: z
      .enum(DEVICE_STATUSES)
      .optional()
      .describe("Only devices with this status. Default: all devices except removed devices"),
    sort_by: sorting.sort_by,
    order_by: sorting.order_by.catch("desc"),
  },
  success: { headers: [TOTAL_COUNT], body: z.array(device) },
  errors: {
    400: "`filter` is not base64 of a valid filter array",
    403: "the user's token is not for a namespace",
  },
});

export const getDevice = defineOperation({
  ...common,
  id: "getDevice",
  summary: "Get a device",
  method: "GET",
  path: "/api/devices/{uid}",
  object: "device",
  minRole: "observer",
  params: { uid },
  success: { body: device },
  errors: { 403: "the user's token is not for a namespace", 404: UNKNOWN },
});

export const deleteDevice = defineOperation({
  ...common,
  id: "deleteDevice",
  summary: "Delete a device and its sessions",
  method: "DELETE",
  path: "/api/devices/{uid}",
  object: "device",
  minRole: "administrator",
  params: { uid },
  errors: { 403: "caller's role is below `administrator`", 404: UNKNOWN },
});

export const updateDevice = defineOperation({
  ...write,
  id: "updateDevice",
  summary: "Change the name or the public URL of a device",
  method: "PUT",
  path: "/api/devices/{uid}",
  params: { uid },
  body: z.object({ name: deviceName.optional(), public_url: z.boolean().optional() }),
  errors: {
    400: "`name` not 1 to 64 characters of a-z, A-Z, 0-9, _ and -",
    403: BELOW_OPERATOR,
    404: UNKNOWN,
    409: "`name` already in use in the namespace",
  },
});

export const renameDevice = defineOperation({
  ...write,
  id: "renameDevice",
  summary: "Change the name of a device",
  method: "PATCH",
  path: "/api/devices/{uid}",
  params: { uid },
  body: z.object({ name: deviceName }),
  errors: {
    400: "`name` missing or invalid",
    403: BELOW_OPERATOR,
    404: UNKNOWN,
    409: "another accepted device has that name",
  },
  repeatable: true,
});

const acceptErrors = {
  402: "cloud: device limit reached or billing refuses",
  403: "role below `operator`, or (community/enterprise) the namespace has reached `max_devices`",
  404: UNKNOWN,
  409: "another accepted device has the same name",
  424: "cloud: the payment gateway failed; the body is `{message, code}`",
};

export const acceptDevice = defineOperation({
  ...write,
  id: "acceptDevice",
  summary: "Accept a device. The operation has no effect on an accepted device",
  method: "PATCH",
  path: "/api/devices/{uid}/accept",
  params: { uid },
  errors: acceptErrors,
  repeatable: true,
});

export const updateDeviceStatus = defineOperation({
  ...write,
  id: "updateDeviceStatus",
  summary: "Change the status of a device: `accept`, `reject`, `pending` or `unused`",
  method: "PATCH",
  path: "/api/devices/{uid}/{status}",
  params: { uid, status: z.enum(["accept", "reject", "pending", "unused"]) },
  errors: {
    400: "`status` not one of `accept`, `reject`, `pending` and `unused`, or the change is not allowed from the current status",
    ...acceptErrors,
  },
});

export const createDeviceTag = defineOperation({
  ...writeTags,
  id: "createDeviceTag",
  summary: "Add a tag to a device",
  method: "POST",
  path: "/api/devices/{uid}/tags",
  params: { uid },
  body: z.object({ tag }),
  idempotencyKey: true,
  errors: {
    400: "`tag` missing, not alphanumeric, or not 3 to 255 characters long",
    403: "role below `operator`, or the device already has 3 tags",
    404: UNKNOWN,
    409: "the device already has the tag",
  },
});

export const updateDeviceTags = defineOperation({
  ...writeTags,
  id: "updateDeviceTags",
  summary: "Replace all tags of a device",
  method: "PUT",
  path: "/api/devices/{uid}/tags",
  params: { uid },
  body: z.object({ tags }),
  errors: {
    400: "`tags` missing, not 1 to 3 tags, duplicate tags, or an invalid tag",
    403: BELOW_OPERATOR,
    404: UNKNOWN,
  },
});

export const deleteDeviceTag = defineOperation({
  ...writeTags,
  id: "deleteDeviceTag",
  summary: "Remove a tag from a device",
  method: "DELETE",
  path: "/api/devices/{uid}/tags/{tag}",
  params: { uid, tag },
  errors: { 400: MALFORMED, 403: BELOW_OPERATOR, 404: "no such device, or the device does not have the tag" },
});
