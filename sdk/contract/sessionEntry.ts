import { isIP } from "node:net";
import { z } from "zod";
import { defineOperation } from "./operation.ts";
import { uid } from "./schemas.ts";
import {
  eventData,
  RECORD_BODY_LIMIT,
  recordChunk,
  recordSession,
  session,
  sessionEvent,
} from "./sessions.ts";

const common = { part: "Private network", auth: ["internal"], scope: "internal" } as const;
const UNKNOWN = "no such session";
const type = z.string().min(1).max(64).describe("web, term, none, …");

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
    type: type.default("none"),
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
  body: z.object({ authenticated: z.boolean().nullish(), type: type.nullish() }),
  errors: { 404: UNKNOWN },
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
  errors: { 404: UNKNOWN },
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
    404: UNKNOWN,
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
    404: UNKNOWN,
    422: "a body field is missing, has the wrong type or is not that of the path",
  },
  bodyLimit: RECORD_BODY_LIMIT,
});
