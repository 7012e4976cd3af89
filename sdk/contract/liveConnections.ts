import { z } from "zod";
import { defineOperation } from "./operation.ts";
import { model, uid } from "./schemas.ts";

/** Longest line of a tunnel, in bytes: agents hang up on longer ones. */
export const TUNNEL_LINE_MAX = 4096;
/** Room for what an agent sends at once, in bytes; its largest messages have 28,708. */
export const STREAM_MESSAGE_MAX = 256 * 1024;
/** Room for what is pasted into a terminal at once, in bytes. */
const TERMINAL_MESSAGE_MAX = 256 * 1024;
/** Why an operation that opens a WebSocket refuses a request. */
export const NO_WEB_SOCKET = "the request is not for a WebSocket";

export const terminalToken = model(
  "TerminalToken",
  "What a web terminal is opened with",
  z.object({ token: z.string() }),
);

export const deviceConnection = defineOperation({
  id: "deviceConnection",
  part: "Devices and agents",
  summary:
    "The tunnel of a device's agent, a WebSocket of binary messages: lines of JSON, each with a `command`. A newer one " +
    "of the same device takes over; each pong counts as a report",
  method: "GET",
  path: "/ssh/connection",
  auth: ["device"],
  scope: "device",
  success: { status: 101 },
  errors: {
    400: NO_WEB_SOCKET,
    404: "the device is gone",
    429: "as many devices of the namespace, or behind the address, hold a tunnel as may while they wait to be accepted",
  },
  bodyLimit: TUNNEL_LINE_MAX,
});

export const deviceRevdial = defineOperation({
  id: "deviceRevdial",
  part: "Devices and agents",
  summary:
    "An agent picks up a connection that was announced in its tunnel, a WebSocket of binary messages; once, within " +
    "10 seconds",
  method: "GET",
  path: "/ssh/revdial",
  auth: ["none"],
  scope: "public",
  query: {
    "revdial.dialer": z.string().max(255).optional(),
    uuid: z.string().max(255).optional(),
  },
  success: { status: 101 },
  errors: { 400: "dialer id unknown or used, or the request is not for a WebSocket" },
  bodyLimit: STREAM_MESSAGE_MAX,
});

export const openWebTerminal = defineOperation({
  id: "openWebTerminal",
  part: "Sessions",
  summary: "What a web terminal is opened with, once, in the next 30 seconds",
  method: "POST",
  path: "/ws/ssh",
  auth: ["none"],
  scope: "public",
  body: z.object({
    device: uid,
    username: z.string().min(1).max(255),
    password: z.string().max(1024).optional().describe("Either this"),
    fingerprint: z.string().max(255).optional().describe("Or this with a signature"),
    signature: z.string().max(8192).optional().describe("Base64"),
  }),
  success: { body: terminalToken },
  errors: { 400: "a field is missing or not allowed" },
  limit: { kind: "login" },
});

export const streamWebTerminal = defineOperation({
  id: "streamWebTerminal",
  part: "Sessions",
  summary:
    "The web terminal, a WebSocket of text messages: the terminal's output as it is, and from the client JSON objects, " +
    'input as `{"kind":1,"data":[bytes]}`, a new size as `{"kind":2,"data":{"cols":80,"rows":24}}`',
  method: "GET",
  path: "/ws/ssh",
  auth: ["none"],
  scope: "public",
  query: {
    token: z.string().max(255).optional(),
    cols: z.string().max(16).optional(),
    rows: z.string().max(16).optional(),
  },
  success: { status: 101 },
  errors: { 400: NO_WEB_SOCKET },
  bodyLimit: TERMINAL_MESSAGE_MAX,
});
