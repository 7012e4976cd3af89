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
 * Header in which a trusted service sends its token. It is not `Authorization`, which `GET /internal/auth` receives
 * as the end user sent it.
 */
export const INTERNAL_TOKEN = "X-Internal-Token";

/** Headers by which the edge tells the services behind it who is calling (rules section 3). */
export const IDENTITY_HEADERS = [
  "X-Tenant-ID",
  "X-Role",
  "X-ID",
  "X-Username",
  "X-Api-Key",
  "X-Device-UID",
] as const;

const common = { part: "Private network", auth: ["internal"], scope: "internal" } as const;

/** How an SSH address names a device, who logs in there, and from where. */
const login = {
  domain: z.string().min(1).max(255).describe("Name of the namespace"),
  name: z.string().min(1).max(255).describe("Name of the device"),
  username: z.string().max(255).describe("Login name on the device"),
  ip_address: z
    .string()
    .refine((text) => isIP(text) !== 0, "must be an IPv4 or IPv6 address")
    .describe("Address of the client"),
};
const UNKNOWN_DEVICE = "no such namespace, or no accepted device of that name in it";

export const privateKey = model(
  "PrivateKey",
  "A key pair that the service has made for one SSH login",
  z.object({
    data: z.base64().describe("Base64 of the private key, PEM (PKCS#1)"),
    fingerprint,
    created_at: dateTime,
  }),
);

export const authRequest = defineOperation({
  ...common,
  scope: "forwarded",
  id: "authRequest",
  summary:
    "Whose token or API key the request carries, as headers: X-Tenant-ID for all but a user without a namespace; " +
    "X-Role for users there and for API keys; X-ID and X-Username for users; X-Api-Key, always `true`, for API " +
    "keys; X-Device-UID for devices",
  method: "GET",
  path: "/internal/auth",
  success: { headers: IDENTITY_HEADERS },
});

export const createUserToken = defineOperation({
  ...common,
  id: "createUserToken",
  summary: "A session for a user, as a login makes one",
  method: "GET",
  path: "/internal/auth/token/{id}",
  params: { id: userId },
  success: { body: userSession },
  errors: { 403: "X-Internal-Token missing or wrong, or the user is not confirmed", 404: "no such user" },
});

export const lookupDevice = defineOperation({
  ...common,
  id: "lookupDevice",
  summary: "The accepted device that an SSH address names",
  method: "GET",
  path: "/internal/lookup",
  query: { ...login, username: login.username.optional(), ip_address: login.ip_address.optional() },
  success: { body: device },
  errors: { 404: UNKNOWN_DEVICE },
});

export const markDeviceOffline = defineOperation({
  ...common,
  id: "markDeviceOffline",
  summary: "Mark a device as offline, until its next report",
  method: "POST",
  path: "/internal/devices/{uid}/offline",
  params: { uid },
  errors: { 404: "device unknown" },
  repeatable: true,
});

export const lookupPublicKey = defineOperation({
  ...common,
  id: "lookupPublicKey",
  summary: "A public key of a namespace",
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
    "Whether a key admits a login name to a device; a key that its namespace does not have admits nobody",
  method: "POST",
  path: "/internal/sshkeys/public-keys/evaluate/{fingerprint}/{username}",
  params: { fingerprint, username: z.string().min(1).max(255) },
  // Only the fields of the device that decide: callers send all of them.
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
  summary: "Make a 4096-bit RSA key pair, which signs for authSshPublicKey during the next 60 seconds",
  method: "POST",
  path: "/internal/sshkeys/private-keys",
  success: { body: privateKey },
  errors: { 503: "too many key pairs are being made; Retry-After says when to try again" },
});

export const evaluateFirewall = defineOperation({
  ...common,
  id: "evaluateFirewall",
  summary: "Whether the firewall lets a login through: 200 if so",
  method: "GET",
  path: "/internal/firewall/rules/evaluate",
  edition: "enterprise",
  query: login,
  errors: { 403: "X-Internal-Token missing or wrong, or a rule denies the login", 404: UNKNOWN_DEVICE },
});

const ofTenant = { ...common, scope: "tenant", edition: "cloud", method: "POST" } as const;
const NO_TENANT = "X-Tenant-ID missing or no namespace's id";
const UNKNOWN_TENANT = "no namespace with the id of X-Tenant-ID";
const PAYMENT_GATEWAY_FAILED = "the payment gateway failed; the body is {message, code}";

export const evaluateNamespaceBilling = defineOperation({
  ...ofTenant,
  id: "evaluateNamespaceBilling",
  summary: "What evaluateBilling answers, of the namespace that X-Tenant-ID names",
  path: "/internal/billing/evaluate",
  success: { body: billingEvaluation },
  errors: { 400: NO_TENANT, 404: UNKNOWN_TENANT, 424: PAYMENT_GATEWAY_FAILED },
  repeatable: true,
});

export const reportNamespaceBilling = defineOperation({
  ...ofTenant,
  id: "reportNamespaceBilling",
  summary: "Ask whether billing lets an action of the namespace through that X-Tenant-ID names",
  path: "/internal/billing/report",
  query: report,
  errors: {
    400: `${NO_TENANT}, or action not device_accept or namespace_delete`,
    402: "billing refuses the action",
    404: UNKNOWN_TENANT,
    424: PAYMENT_GATEWAY_FAILED,
  },
  repeatable: true,
});

const UNKNOWN_SESSION = "no such session";
const sessionType = z.string().min(1).max(64).describe("web, term, none, …");

export const createSession = defineOperation({
  ...common,
  id: "createSession",
  summary: "A login to a device begins",
  method: "POST",
  path: "/internal/sessions",
  body: z.object({
    uid: uid.describe("Chosen by the caller"),
    device_uid: uid,
    username: z.string().max(255).describe("Login name on the device"),
    ip_address: z.string().refine((text) => isIP(text) !== 0, "must be an IPv4 or IPv6 address"),
    type: sessionType.default("none"),
    term: z.string().max(255).default("none").describe("Terminal type"),
  }),
  success: { body: session },
  errors: { 404: "no accepted device with that uid", 409: "there is a session with that uid" },
});

export const updateSession = defineOperation({
  ...common,
  id: "updateSession",
  summary: "What is known of a session changes; that it is recorded, its first record says",
  method: "PATCH",
  path: "/internal/sessions/{uid}",
  params: { uid },
  // The SSH service of 0.19 sends null for what does not change.
  body: z.object({ authenticated: z.boolean().nullish(), type: sessionType.nullish() }),
  errors: { 404: UNKNOWN_SESSION },
  repeatable: true,
});

export const keepSessionAlive = defineOperation({
  ...common,
  id: "keepSessionAlive",
  summary: "A session goes on; to be sent every 30 seconds",
  method: "POST",
  path: "/internal/sessions/{uid}/keepalive",
  params: { uid },
  errors: { 404: "no such session, or it is closed: the login is to be ended" },
  repeatable: true,
});

export const finishSession = defineOperation({
  ...common,
  id: "finishSession",
  summary: "A session has ended; one that is closed stays so",
  method: "POST",
  path: "/internal/sessions/{uid}/finish",
  params: { uid },
  errors: { 404: UNKNOWN_SESSION },
  repeatable: true,
});

export const addSessionEvent = defineOperation({
  ...common,
  id: "addSessionEvent",
  summary: "Something happened in a session",
  method: "POST",
  path: "/internal/sessions/{uid}/events",
  params: { uid },
  body: sessionEvent,
  errors: {
    403: "X-Internal-Token missing or wrong, or the session has as many events as it may",
    404: UNKNOWN_SESSION,
  },
});

/** A body that may be left out: then it counts as an empty object. */
const isEmpty = (body: unknown): boolean =>
  typeof body === "object" && body !== null && Object.keys(body).length === 0;

/** A message of the WebSocket of `streamSessionEvents`, as the SSH service of 0.19 sends it. */
export const streamedEvent = sessionEvent.extend({
  timestamp: z.iso.datetime({ offset: true }),
  data: z.union([eventData, z.string()]).nullish(),
});

export const streamSessionEvents = defineOperation({
  ...common,
  id: "streamSessionEvents",
  summary:
    "A WebSocket for what happens in a session, which may begin after it: each text message is a JSON object with " +
    "`type`, `timestamp`, `seat` and `data`, which is an object or the base64 of a payload. It is stored as " +
    "`addSessionEvent` does; the `output` of a `pty-output` is recorded as `storeSessionRecord` does. What may not " +
    "be stored is left out; one that is malformed closes the WebSocket with 1007, one of a session that is not there " +
    "with 1008",
  method: "GET",
  path: "/internal/sessions/{uid}/events",
  params: { uid },
  success: { status: 101 },
  errors: {
    400: "the request is not for a WebSocket",
    404: "no session can have the uid",
    503: "there are too many WebSockets",
  },
  bodyLimit: RECORD_BODY_LIMIT,
});

export const storeSessionRecord = defineOperation({
  ...common,
  id: "storeSessionRecord",
  summary:
    `${recordSession.summary}. Without a body, as the SSH service of 0.19 ends a recording, it changes nothing: what ` +
    "was recorded is stored already",
  method: "POST",
  path: "/internal/sessions/{uid}/records/{seat}",
  edition: "enterprise",
  params: recordSession.params.shape,
  body: z.preprocess((body) => (isEmpty(body) ? undefined : body), recordChunk.optional()),
  errors: {
    403: "X-Internal-Token missing or wrong, recording is off, the session is over, or the recording is as long as it may be",
    404: UNKNOWN_SESSION,
    422: "a body field is missing, has the wrong type or is not that of the path",
  },
  bodyLimit: RECORD_BODY_LIMIT,
});
