import { isIP } from "node:net";
import { z } from "zod";
import { billingEvaluation, report } from "./billing.ts";
import { device } from "./devices.ts";
import { defineOperation } from "./operation.ts";
import { publicKey } from "./publicKeys.ts";
import { dateTime, fingerprint, model, tenantId, uid, userId } from "./schemas.ts";
import {
  eventData,
  RECORD_BODY_LIMIT,
  recordChunk,
  recordSession,
  session,
  sessionEvent,
} from "./sessions.ts";
import { userSession } from "./users.ts";

/**
 * Header with the token of a trusted service. The token is not in the header `Authorization`, because `GET
 * /internal/auth` receives the end user's `Authorization` header.
 */
export const INTERNAL_TOKEN = "X-Internal-Token";

/**
 * Headers in which the edge proxy sends the identity of the caller to the services behind the proxy (rules section 3).
 */
export const IDENTITY_HEADERS = [
  "X-Tenant-ID",
  "X-Role",
  "X-ID",
  "X-Username",
  "X-Api-Key",
  "X-Device-UID",
  "X-Workload-ID",
] as const;

const common = { part: "Private network", auth: ["internal"], scope: "internal" } as const;

/**
 * Query fields of a login: the namespace and the device of the SSH address, the login name and the client's address.
 */
const login = {
  domain: z.string().min(1).max(255).describe("Name of the namespace"),
  name: z.string().min(1).max(255).describe("Name of the device"),
  username: z.string().max(255).describe("Login name on the device"),
  ip_address: z
    .string()
    .refine((text) => isIP(text) !== 0, "must be an IPv4 or IPv6 address")
    .describe("Address of the client"),
};
const UNKNOWN_DEVICE = "no such namespace, or the namespace has no accepted device of that name";

export const privateKey = model(
  "PrivateKey",
  "A key pair that the service created for one SSH login",
  z.object({
    data: z.base64().describe("Private key in PEM format (PKCS#1), encoded in base64"),
    fingerprint,
    created_at: dateTime,
  }),
);

export const authRequest = defineOperation({
  ...common,
  scope: "forwarded",
  id: "authRequest",
  summary:
    "Identify the caller by the token or API key of the request, and return headers: `X-Tenant-ID` (except " +
    "for a user without a namespace); `X-Role` for API keys, workloads and users with a namespace; `X-ID` and " +
    "`X-Username` for users; `X-Api-Key`, always `true`, for API keys; `X-Device-UID` for devices; `X-Workload-ID` for workloads",
  method: "GET",
  path: "/internal/auth",
  success: { headers: IDENTITY_HEADERS },
});

export const createUserToken = defineOperation({
  ...common,
  id: "createUserToken",
  summary: "Create a session for a user, as a login does",
  method: "GET",
  path: "/internal/auth/token/{id}",
  params: { id: userId },
  success: { body: userSession },
  errors: { 403: "`X-Internal-Token` missing or wrong, or the user is not confirmed", 404: "no such user" },
});

export const lookupDevice = defineOperation({
  ...common,
  id: "lookupDevice",
  summary: "Get the accepted device of an SSH address",
  method: "GET",
  path: "/internal/lookup",
  query: { ...login, username: login.username.optional(), ip_address: login.ip_address.optional() },
  success: { body: device },
  errors: { 404: UNKNOWN_DEVICE },
});

export const markDeviceOffline = defineOperation({
  ...common,
  id: "markDeviceOffline",
  summary: "Mark a device as offline until its next report",
  method: "POST",
  path: "/internal/devices/{uid}/offline",
  params: { uid },
  errors: { 404: "device unknown" },
  repeatable: true,
});

export const lookupPublicKey = defineOperation({
  ...common,
  id: "lookupPublicKey",
  summary: "Get a public key of a namespace",
  method: "GET",
  path: "/internal/sshkeys/public-keys/{fingerprint}/{tenant}",
  params: { fingerprint, tenant: tenantId },
  success: { body: publicKey },
  errors: { 404: "no such key in the namespace" },
});

export const evaluatePublicKey = defineOperation({
  ...common,
  id: "evaluatePublicKey",
  summary:
    "Check whether a key admits a login name on a device. Returns false if the namespace does not have the key",
  method: "POST",
  path: "/internal/sshkeys/public-keys/evaluate/{fingerprint}/{username}",
  params: { fingerprint, username: z.string().min(1).max(255) },
  // Callers send all fields of the device. The schema contains only the fields that affect whether the login is
  // allowed.
  body: z.object({
    name: z.string().max(255),
    tenant_id: tenantId,
    tags: z.array(z.string()).max(100).nullish(),
  }),
  success: { body: z.boolean() },
  repeatable: true,
});

export const createPrivateKey = defineOperation({
  ...common,
  id: "createPrivateKey",
  summary:
    "Create a 4096-bit RSA key pair. `authSshPublicKey` can sign with this key pair during the next 60 seconds",
  method: "POST",
  path: "/internal/sshkeys/private-keys",
  success: { body: privateKey },
  errors: { 503: "too many key pairs are being created; `Retry-After` contains the seconds to wait" },
});

export const evaluateFirewall = defineOperation({
  ...common,
  id: "evaluateFirewall",
  summary:
    "Check whether the firewall allows a login. Returns 200 if the firewall allows the login, otherwise 403",
  method: "GET",
  path: "/internal/firewall/rules/evaluate",
  edition: "enterprise",
  query: login,
  errors: { 403: "`X-Internal-Token` missing or wrong, or a rule denies the login", 404: UNKNOWN_DEVICE },
});

const ofTenant = { ...common, scope: "tenant", edition: "cloud", method: "POST" } as const;
const NO_TENANT = "`X-Tenant-ID` missing, or not the id of a namespace";
const UNKNOWN_TENANT = "no namespace with the id in `X-Tenant-ID`";
const PAYMENT_GATEWAY_FAILED = "the payment gateway failed; the body is `{message, code}`";

export const evaluateNamespaceBilling = defineOperation({
  ...ofTenant,
  id: "evaluateNamespaceBilling",
  summary:
    "Check whether billing allows the namespace in `X-Tenant-ID` to accept another device, and whether it " +
    "allows users to connect to the namespace's devices",
  path: "/internal/billing/evaluate",
  success: { body: billingEvaluation },
  errors: { 400: NO_TENANT, 404: UNKNOWN_TENANT, 424: PAYMENT_GATEWAY_FAILED },
  repeatable: true,
});

export const reportNamespaceBilling = defineOperation({
  ...ofTenant,
  id: "reportNamespaceBilling",
  summary: "Check whether billing allows an action of the namespace in `X-Tenant-ID`",
  path: "/internal/billing/report",
  query: report,
  errors: {
    400: `${NO_TENANT}, or \`action\` neither \`device_accept\` nor \`namespace_delete\``,
    402: "billing refuses the action",
    404: UNKNOWN_TENANT,
    424: PAYMENT_GATEWAY_FAILED,
  },
  repeatable: true,
});

const UNKNOWN_SESSION = "no such session";
const sessionType = z.string().min(1).max(64).describe("`web`, `term`, `none`, …");

export const createSession = defineOperation({
  ...common,
  id: "createSession",
  summary: "Start a session: a login to a device",
  method: "POST",
  path: "/internal/sessions",
  body: z.object({
    uid: uid.describe("Uid that the caller chooses"),
    device_uid: uid,
    username: z.string().max(255).describe("Login name on the device"),
    ip_address: z.string().refine((text) => isIP(text) !== 0, "must be an IPv4 or IPv6 address"),
    type: sessionType.default("none"),
    term: z.string().max(255).default("none").describe("Terminal type"),
  }),
  success: { body: session },
  errors: {
    403: "the namespace records sessions, and its recordings have reached their maximum size",
    404: "no accepted device with that uid",
    409: "a session with that uid already exists",
  },
});

export const updateSession = defineOperation({
  ...common,
  id: "updateSession",
  summary:
    "Change fields of a session. A request cannot change `recorded`: the service sets it with the first record",
  method: "PATCH",
  path: "/internal/sessions/{uid}",
  params: { uid },
  // The SSH service of version 0.19 sends null for each field that it does not change.
  body: z.object({ authenticated: z.boolean().nullish(), type: sessionType.nullish() }),
  errors: { 404: UNKNOWN_SESSION },
  repeatable: true,
});

export const keepSessionAlive = defineOperation({
  ...common,
  id: "keepSessionAlive",
  summary: "Keep a session alive. Send this request every 30 seconds",
  method: "POST",
  path: "/internal/sessions/{uid}/keepalive",
  params: { uid },
  errors: { 404: "no such session, or the session is closed; the caller must end the login" },
  repeatable: true,
});

export const finishSession = defineOperation({
  ...common,
  id: "finishSession",
  summary: "End a session. The operation has no effect on a closed session",
  method: "POST",
  path: "/internal/sessions/{uid}/finish",
  params: { uid },
  errors: { 404: UNKNOWN_SESSION },
  repeatable: true,
});

export const addSessionEvent = defineOperation({
  ...common,
  id: "addSessionEvent",
  summary: "Add an event to a session",
  method: "POST",
  path: "/internal/sessions/{uid}/events",
  params: { uid },
  body: sessionEvent,
  errors: {
    403: "`X-Internal-Token` missing or wrong, or the session has reached its maximum number of events",
    404: UNKNOWN_SESSION,
  },
});

/** Returns true for an empty object, which is treated as an omitted body. */
const isEmpty = (body: unknown): boolean =>
  typeof body === "object" && body !== null && Object.keys(body).length === 0;

/** A message of the WebSocket of `streamSessionEvents`, in the format of the SSH service of version 0.19. */
export const streamedEvent = sessionEvent.extend({
  timestamp: z.iso.datetime({ offset: true }),
  data: z.union([eventData, z.string()]).nullish(),
});

export const streamSessionEvents = defineOperation({
  ...common,
  id: "streamSessionEvents",
  summary:
    "Open a WebSocket for the events of a session, which need not exist yet. Each text message is a JSON " +
    "object with `type`, `timestamp`, `seat` and `data`. The value of `data` is an object or the base64 of a payload. " +
    "The service stores each event as `addSessionEvent` does, and records the `output` of a `pty-output` " +
    "event as `storeSessionRecord` does. The service ignores messages that it is not allowed to store. After" +
    " a malformed message, the service closes the WebSocket with the code 1007. After a message for an unknown " +
    "session, the service closes it with the code 1008",
  method: "GET",
  path: "/internal/sessions/{uid}/events",
  params: { uid },
  success: { status: 101 },
  errors: {
    400: "the request is not for a WebSocket",
    404: "the uid is not the uid of a session",
    503: "too many open WebSockets",
  },
  bodyLimit: RECORD_BODY_LIMIT,
});

export const storeSessionRecord = defineOperation({
  ...common,
  id: "storeSessionRecord",
  summary:
    `${recordSession.summary}. A request without a body has no effect. The SSH service of version 0.19 ` +
    "sends such a request at the end of a recording, after it has sent all output",
  method: "POST",
  path: "/internal/sessions/{uid}/records/{seat}",
  edition: "enterprise",
  params: recordSession.params.shape,
  body: z.preprocess((body) => (isEmpty(body) ? undefined : body), recordChunk.optional()),
  errors: {
    403: "`X-Internal-Token` missing or wrong, recording is off, the session has ended, or the recording has reached its maximum length",
    404: UNKNOWN_SESSION,
    422: "a body field is missing, has the wrong type or differs from the path",
  },
  bodyLimit: RECORD_BODY_LIMIT,
});
