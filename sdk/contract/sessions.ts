import { z } from "zod";
import { device } from "./devices.ts";
import { defineOperation, MALFORMED } from "./operation.ts";
import { addition, dateTime, model, paging, TOTAL_COUNT, tenantId, uid, userId } from "./schemas.ts";

const part = "Sessions";
const UNKNOWN = "no such session in the namespace";
const NOTHING_RECORDED = "no such session, or the seat has no recording";
const BELOW_ADMINISTRATOR = "caller's role is below `administrator`";

const common = { part, auth: ["jwt", "apikey"], scope: "namespace" } as const;

/** Media type of a recording in the format of terminal players. */
export const ASCIICAST = "application/x-asciicast";

/** Highest seat number. A seat is one of the parallel channels of a session. */
const SEAT_MAX = 9999;
const seat = z.int().min(0).max(SEAT_MAX);
const seatInPath = z
  .string()
  .regex(/^(0|[1-9]\d{0,3})$/, `must be a whole number from 0 to ${SEAT_MAX}`)
  .describe("Seat number: the number of a channel of the session, starting at 0");

/** Maximum length of a chunk of terminal output, in characters. */
const MESSAGE_MAX = 32 * 1024;
// The width and height of a terminal are 32-bit numbers (RFC 4254, section 6.2). With a smaller maximum, recordings
// would lack the output of larger terminals.
const size = z.int().min(0).max(4_294_967_295);

/**
 * The data of an event: a flat object, because nested values would be expensive to parse. All known events have flat
 * data.
 */
export const eventData = z.record(
  z.string().max(64),
  z.union([z.string(), z.number(), z.boolean(), z.null()]),
);

/** Maximum number of events in one response. */
export const EVENTS_PAGE = 1000;
/** Maximum size of the data of the events in one response, in bytes. The first event may be larger. */
export const EVENTS_PAGE_BYTES = 256 * 1024;

/**
 * An event in a session, as an SSH gateway reports the event. Later versions may add types of events (models section
 * 7).
 */
export const sessionEvent = model(
  "SessionEvent",
  "An event in a session: shell, exec, pty-req, …",
  z.object({
    type: z.string().min(1).max(64),
    timestamp: dateTime,
    data: eventData.describe("Data of the event; its fields depend on the type"),
    seat,
  }),
);

export const session = model(
  "Session",
  "A session: a login to a device",
  z.object({
    uid,
    device_uid: uid,
    device,
    tenant_id: tenantId,
    username: z.string().describe("Login name on the device"),
    ip_address: z.string().describe("Address of the client"),
    started_at: dateTime,
    last_seen: dateTime,
    active: z
      .boolean()
      .describe(
        "Whether the session is authenticated, not closed, and was kept alive within the last 90 seconds",
      ),
    authenticated: z.boolean(),
    recorded: z.boolean().describe("Whether the session has a recording"),
    type: z.string().describe("`web`, `term`, `none`, …"),
    term: z.string().describe("Terminal type"),
    position: z
      .object({ latitude: z.number(), longitude: z.number() })
      .describe("Geographic position of `ip_address`"),
    // Only this service has the field `key_fingerprint`, which is not part of the specification.
    key_fingerprint: z
      .string()
      .optional()
      .describe(
        "Fingerprint of the public key that authenticated the login. Omitted if a password authenticated " +
          "the login. Other servers always omit it",
      ),
    user_id: userId.optional().describe("User whose login opened the session in a browser"),
    // `types` has a list for each seat, as in the specification. Other servers send one flat list of types (rules D7).
    events: z.object({
      types: z.array(z.array(z.string())).describe("For each seat in `seats`, the types of its events"),
      seats: z.array(z.int()),
      items: z
        .array(sessionEvent)
        .describe(`At most ${EVENTS_PAGE} events, see \`events_after\`; empty in lists`),
    }),
  }),
);

/** Output stream of a command. All output of a terminal is `stdout`. */
const stream = z.enum(["stdout", "stderr"]).optional().describe("Default: `stdout`");

const chunk = {
  uid: uid.describe("Uid of the session, as in the path"),
  seat: seat.describe("Number of the seat, as in the path"),
  message: z.string().max(MESSAGE_MAX).describe("Terminal output"),
  width: size,
  height: size,
  stream,
};

/** A chunk of terminal output in a request. */
export const recordChunk = z.object({ ...chunk, stream: addition(stream) });

/**
 * Maximum body size of a request that adds a chunk of output, in bytes. The limit leaves space for the other fields and
 * the longest chunk, even if JSON escapes each character of the chunk.
 */
export const RECORD_BODY_LIMIT = 6 * MESSAGE_MAX + 4096;

export const sessionRecord = model(
  "SessionRecord",
  "Terminal output of a session",
  z.object({
    ...chunk,
    tenant_id: tenantId,
    time: dateTime.describe("Arrival time of the chunk"),
  }),
);

export const getSessions = defineOperation({
  ...common,
  id: "getSessions",
  summary: "List the namespace's sessions, latest first",
  method: "GET",
  path: "/api/sessions",
  minRole: "observer",
  query: {
    ...paging,
    key_fingerprint: z.string().max(64).optional().describe("Only sessions that this public key opened"),
    user_id: userId.optional().describe("Only sessions that this user opened in a browser"),
  },
  success: { headers: [TOTAL_COUNT], body: z.array(session) },
  errors: { 403: "the user's token is not for a namespace" },
});

export const getSession = defineOperation({
  ...common,
  id: "getSession",
  summary: "Get a session with its events",
  method: "GET",
  path: "/api/sessions/{uid}",
  minRole: "observer",
  params: { uid },
  query: {
    events_after: z
      .string()
      .regex(/^\d{1,9}$/, "must be a whole number from 0 to 999999999")
      .optional()
      .describe(
        `Number of events to skip. The response contains the next ${EVENTS_PAGE} events, or fewer if their data ` +
          `exceeds ${EVENTS_PAGE_BYTES / 1024} KiB. If the response contains no events, there are no further events`,
      ),
  },
  success: { body: session },
  errors: {
    400: "`events_after` is not a whole number",
    403: "the user's token is not for a namespace",
    404: UNKNOWN,
  },
});

export const setSessionAuthenticated = defineOperation({
  id: "setSessionAuthenticated",
  part,
  summary: "Store whether the login of a session succeeded. The value `true` makes the session active",
  method: "POST",
  path: "/api/sessions/{uid}",
  // Trusted services call `updateSession` on the internal listener instead of this operation.
  auth: ["jwt", "apikey", "device", "internal"],
  scope: "session",
  minRole: "administrator",
  params: { uid },
  body: z.object({ authenticated: z.boolean() }),
  errors: { 400: "`authenticated` is not a boolean", 403: BELOW_ADMINISTRATOR, 404: UNKNOWN },
  repeatable: true,
});

export const closeSession = defineOperation({
  ...common,
  id: "closeSession",
  summary: "Close a session. The operation has no effect on a closed session",
  method: "POST",
  path: "/api/sessions/{uid}/close",
  minRole: "administrator",
  params: { uid },
  body: z.object({ device: uid.describe("Uid of the session's device") }),
  errors: {
    400: "`device` missing, or not 64 hex characters",
    403: BELOW_ADMINISTRATOR,
    404: "no such session of that device in the namespace",
  },
  repeatable: true,
});

export const recordSession = defineOperation({
  id: "recordSession",
  part,
  summary: "Add terminal output to the recording of a seat, if the namespace records its sessions",
  method: "POST",
  path: "/api/sessions/{uid}/records/{seat}",
  edition: "enterprise",
  // Trusted services call `storeSessionRecord` on the internal listener instead of this operation.
  auth: ["jwt", "apikey", "device", "internal"],
  scope: "session",
  minRole: "administrator",
  params: { uid, seat: seatInPath },
  body: recordChunk,
  errors: {
    400: MALFORMED,
    403:
      "role below `administrator`, recording is off, the session has ended, or the recording has reached " +
      "its maximum length; or the caller is a device without a proof of its key, or a device whose " +
      "session the gateway records",
    404: UNKNOWN,
    422: "a body field is missing, has the wrong type or differs from the path",
  },
  bodyLimit: RECORD_BODY_LIMIT,
});

export const getSessionRecord = defineOperation({
  ...common,
  path: "/api/sessions/{uid}/records/{seat}",
  edition: "enterprise",
  minRole: "administrator",
  params: { uid, seat: seatInPath },
  id: "getSessionRecord",
  summary:
    "Get the recording of a seat, ordered by time. The format is asciicast v2 if `Accept` contains " +
    `\`${ASCIICAST}\` or \`text/plain\` and does not prefer JSON`,
  method: "GET",
  // The JSON array is the format of the specification. The text formats are for terminal players (rules D29).
  success: { body: z.array(sessionRecord), alternatives: [ASCIICAST, "text/plain"] },
  errors: { 403: BELOW_ADMINISTRATOR, 404: NOTHING_RECORDED },
});

export const deleteSessionRecord = defineOperation({
  ...common,
  path: "/api/sessions/{uid}/records/{seat}",
  edition: "enterprise",
  minRole: "administrator",
  params: { uid, seat: seatInPath },
  id: "deleteSessionRecord",
  summary: "Delete the recording of a seat",
  method: "DELETE",
  errors: { 403: BELOW_ADMINISTRATOR, 404: NOTHING_RECORDED },
});

export const getSessionRecordStatus = defineOperation({
  ...common,
  id: "getSessionRecordStatus",
  summary: "Check whether the namespace records its sessions",
  method: "GET",
  path: "/api/users/security",
  minRole: "observer",
  success: { body: z.boolean() },
  errors: { 404: "the token is not for a namespace" },
});
