import { z } from "zod";
import { declaredBy, defineOperation, MALFORMED } from "./operation.ts";
import {
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
const BELOW_OPERATOR = "caller's role is below operator";
const UNKNOWN = "no such device in the namespace";

const common = { part, auth: ["jwt", "apikey"], scope: "namespace" } as const;
const write = { ...common, object: "device", minRole: "operator" } as const;
const writeTags = { ...write, object: "deviceTags" } as const;

/** What has become of a device, or of its wish to enroll. */
export const DEVICE_STATUSES = ["accepted", "rejected", "pending", "removed", "unused"] as const;

const deviceInfo = z.object({
  id: z.string().max(255).describe("Operating system id"),
  pretty_name: z.string().max(255),
  version: z.string().max(64).describe("Agent version"),
  arch: z.string().max(64),
  platform: z.string().max(64).describe("native, docker, bundle, connector, …"),
});

export const device = model(
  "Device",
  "A machine that runs an agent",
  z.object({
    uid,
    name: z.string(),
    identity: z.object({ mac: z.string() }),
    info: deviceInfo,
    public_key: z
      .string()
      .describe("PEM; empty for observers, because it identifies the device to the service"),
    tenant_id: tenantId,
    last_seen: dateTime,
    online: z.boolean(),
    namespace: z.string().describe("Namespace name"),
    status: z.enum(DEVICE_STATUSES),
    status_update_at: dateTime,
    status_updated_at: dateTime.describe("The same, in the spelling of older clients"),
    created_at: dateTime,
    remote_addr: z.string(),
    position: z.object({ latitude: z.number(), longitude: z.number() }),
    tags: z.array(z.string()),
    public_url: z.boolean(),
    acceptable: z.boolean().describe("May be accepted now"),
    revision,
    tags_revision: revision.describe("The same for the tags, which are declared by themselves"),
    declared_by: declaredBy,
    tags_declared_by: declaredBy,
  }),
);

export const deviceAuth = model(
  "DeviceAuth",
  "What an agent gets when it reports",
  z.object({
    uid,
    token: z.string(),
    name: z.string(),
    namespace: z.string(),
    agent_key: z
      .string()
      .describe(
        "Public key that the service logs in to agents with (base64, as in authorized_keys), to pin; only with a proof",
      )
      .optional(),
  }),
);

/** Name of a device, stored in lower case (rules section 20). */
export const deviceName = z
  .string()
  .min(1)
  .max(64)
  .regex(/^[a-zA-Z0-9_-]+$/, "may hold letters, digits, _ and -");

// What the refinement of authDevice's body demands, for readers of its JSON Schema.
const HAS_HOSTNAME = { required: ["hostname"], properties: { hostname: { minLength: 1 } } };
const HAS_MAC = {
  required: ["identity"],
  properties: { identity: { type: "object", properties: { mac: { minLength: 1 } } } },
};

/**
 * The text that a device signs to prove that it has its private key. Its first line keeps the signature from being valid
 * for anything else.
 */
export const proofText = (tenant: string, challenge: string): string =>
  `gatehouse device proof 1\n${tenant}\n${challenge}`;

export const challengeDevice = defineOperation({
  id: "challengeDevice",
  part,
  summary:
    "A challenge that an agent signs when it enrolls or reports, to prove that it has the device's private key",
  method: "POST",
  path: "/api/devices/challenge",
  auth: ["none"],
  scope: "public",
  success: { body: z.object({ challenge: z.string().describe("Valid for a minute") }) },
  repeatable: true,
  limit: { kind: "report" },
});

export const authDevice = defineOperation({
  id: "authDevice",
  part,
  summary: "An agent enrolls or reports; the same agent again keeps name, status and tags",
  method: "POST",
  path: "/api/devices/auth",
  aliases: ["/api/auth/device"],
  auth: ["none"],
  scope: "public",
  body: z
    .object({
      info: deviceInfo,
      sessions: z.array(z.string().max(64)).max(1000).nullish().describe("Sessions still alive"),
      hostname: z.union([deviceName, z.literal("")]).optional(),
      identity: z.object({ mac: z.string().max(64) }).nullish(),
      public_key: z.string().min(1).max(4096).describe("PEM"),
      tenant_id: tenantId,
      proof: z
        .object({
          challenge: z.string().min(1).max(2048).describe("From `challengeDevice`"),
          signature: z
            .base64()
            .min(1)
            .max(2048)
            .describe(
              "RSA PKCS #1 v1.5 with SHA-256 over the challenge's text for proofs, by the device's private key",
            ),
        })
        .optional()
        .describe("Proves that the agent has the private key; without it the token records nothing"),
    })
    .meta({ anyOf: [HAS_HOSTNAME, HAS_MAC] })
    .refine((body) => body.hostname || body.identity?.mac, "needs at least one of hostname and identity.mac"),
  success: { body: deviceAuth },
  errors: {
    400: "required field missing or invalid, or neither hostname nor identity.mac",
    401: "listed by the specification; unused, no token is needed",
    403:
      "as many devices as the service allows wait in the namespace to be accepted, and this one is new; the proof is " +
      "wrong; or the namespace requires one",
    404: "tenant_id unknown",
  },
  repeatable: true,
  // A thousand sessions and a key are more than most operations take.
  bodyLimit: 128 * 1024,
  limit: { kind: "report" },
});

export const signature = model(
  "Signature",
  "A signature by a private key of the service",
  z.object({ signature: z.base64().describe("RSA PKCS#1 v1.5 with SHA-256") }),
);

export const authSshPublicKey = defineOperation({
  id: "authSshPublicKey",
  part,
  summary: "A device's agent has text signed by the private key of a login to it, to see whose key that is",
  method: "POST",
  path: "/api/auth/ssh",
  auth: ["device", "jwt", "apikey"],
  scope: "device",
  minRole: "observer",
  body: z.object({
    fingerprint,
    // What an SSH client signs to log in holds control characters (RFC 4252, section 7): this service must sign
    // that for nobody, else a device could log in to another one with the key.
    data: z
      .string()
      .min(1)
      .max(4096)
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
      .regex(/^[^\u0000-\u001f\u007f-\u009f]*$/, "must not hold control characters")
      .describe("Text to sign"),
  }),
  success: { body: signature },
  errors: { 400: "field missing", 404: "no private key with that fingerprint" },
  repeatable: true,
});

export const offlineDevice = defineOperation({
  id: "offlineDevice",
  part,
  summary: "Mark a device as offline, until its next report",
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
  summary: "The namespace's devices",
  method: "GET",
  path: "/api/devices",
  minRole: "observer",
  query: {
    ...filtering,
    status: z.enum(DEVICE_STATUSES).optional().describe("Default: every status but removed"),
    sort_by: sorting.sort_by,
    order_by: sorting.order_by.catch("desc"),
  },
  success: { headers: [TOTAL_COUNT], body: z.array(device) },
  errors: { 400: "filter is not base64 of a valid filter array", 403: "user token without a namespace" },
});

export const getDevice = defineOperation({
  ...common,
  id: "getDevice",
  summary: "One device",
  method: "GET",
  path: "/api/devices/{uid}",
  object: "device",
  minRole: "observer",
  params: { uid },
  success: { body: device },
  errors: { 403: "user token without a namespace", 404: UNKNOWN },
});

export const deleteDevice = defineOperation({
  ...common,
  id: "deleteDevice",
  summary: "Remove a device with its sessions",
  method: "DELETE",
  path: "/api/devices/{uid}",
  object: "device",
  minRole: "administrator",
  params: { uid },
  errors: { 403: "caller's role is below administrator", 404: UNKNOWN },
});

export const updateDevice = defineOperation({
  ...write,
  id: "updateDevice",
  summary: "Change name or public URL of a device",
  method: "PUT",
  path: "/api/devices/{uid}",
  params: { uid },
  body: z.object({ name: deviceName.optional(), public_url: z.boolean().optional() }),
  errors: {
    400: "name outside 1..64 chars of a-z A-Z 0-9 _ -",
    403: BELOW_OPERATOR,
    404: UNKNOWN,
    409: "name taken in the namespace",
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
    400: "name missing or invalid",
    403: BELOW_OPERATOR,
    404: UNKNOWN,
    409: "another accepted device has that name",
  },
  repeatable: true,
});

const acceptErrors = {
  402: "cloud: device limit reached or billing refuses",
  403: "role below operator, or max_devices reached on community/enterprise",
  404: UNKNOWN,
  409: "another accepted one has the same name",
  424: "cloud: the payment gateway failed; the body is {message, code}",
};

export const acceptDevice = defineOperation({
  ...write,
  id: "acceptDevice",
  summary: "Accept a device; an accepted one stays so",
  method: "PATCH",
  path: "/api/devices/{uid}/accept",
  params: { uid },
  errors: acceptErrors,
  repeatable: true,
});

export const updateDeviceStatus = defineOperation({
  ...write,
  id: "updateDeviceStatus",
  summary: "Change the status of a device: accept, reject, pending or unused",
  method: "PATCH",
  path: "/api/devices/{uid}/{status}",
  params: { uid, status: z.enum(["accept", "reject", "pending", "unused"]) },
  errors: {
    400: "status not one of accept, reject, pending, unused; or the change is not allowed from the current state",
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
    400: "tag missing, not alphanumeric or outside 3..255",
    403: "role below operator, or it already has 3 tags",
    404: UNKNOWN,
    409: "tag already on it",
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
    400: "tags missing, not 1..3 items, duplicates, or an invalid tag",
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
  errors: { 400: MALFORMED, 403: BELOW_OPERATOR, 404: "no such device, or tag not on it" },
});
