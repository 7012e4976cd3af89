import { z } from "zod";
import { defineOperation } from "./operation.ts";
import { model, uid } from "./schemas.ts";

/**
 * Maximum length of a line in an agent's tunnel, in bytes. Agents close the connection if they receive a longer line.
 */
export const TUNNEL_LINE_MAX = 4096;
/** Maximum size of a WebSocket message of an agent, in bytes. Known agents send at most 28,708 bytes. */
export const STREAM_MESSAGE_MAX = 256 * 1024;
/** Maximum size of text that a user pastes into a terminal, in bytes. */
const TERMINAL_MESSAGE_MAX = 256 * 1024;
/** Description of the status 400 for an operation that opens a WebSocket: the request is not a WebSocket upgrade. */
export const NO_WEB_SOCKET = "the request is not for a WebSocket";

export const terminalToken = model(
  "TerminalToken",
  "A token that opens a web terminal",
  z.object({ token: z.string() }),
);

const tunnel = {
  part: "Devices and agents",
  method: "GET",
  auth: ["device"],
  scope: "device",
  success: { status: 101 },
  errors: {
    400: NO_WEB_SOCKET,
    404: "the device no longer exists",
    429: "the namespace or the source address has reached its maximum number of tunnels of pending devices, another tunnel of the device still waits for the proof of the device's private key, or a tunnel with such a proof was opened less than 10 seconds ago",
  },
} as const;

export const deviceConnection = defineOperation({
  ...tunnel,
  id: "deviceConnection",
  summary:
    "Open the tunnel of a device's agent (transport 1). The tunnel is a WebSocket of binary messages. The messages " +
    "contain lines of JSON, and each line has a `command`. A newer tunnel of the same device replaces the older tunnel. Each pong is treated as a report",
  path: "/ssh/connection",
  bodyLimit: TUNNEL_LINE_MAX,
});

export const agentConnection = defineOperation({
  ...tunnel,
  id: "agentConnection",
  summary:
    "Open the tunnel of a device's agent (transport 2). The tunnel is a WebSocket of binary messages. The bytes of " +
    "the messages form a yamux connection. Apart from this format, the operation is like `deviceConnection`",
  path: "/agent/connection",
  bodyLimit: STREAM_MESSAGE_MAX,
});

export const deviceRevdial = defineOperation({
  id: "deviceRevdial",
  part: "Devices and agents",
  summary:
    "Accept a connection that the service announced in the agent's tunnel. The connection is a WebSocket " +
    "of binary messages. Each announced connection can be accepted once, within 10 seconds",
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
  summary: "Create a token that opens a web terminal once, within the next 30 seconds",
  method: "POST",
  path: "/ws/ssh",
  auth: ["none"],
  scope: "public",
  body: z.object({
    device: uid,
    username: z.string().min(1).max(255),
    password: z
      .string()
      .max(1024)
      .optional()
      .describe("Password of the login. Omit it if `fingerprint` and `signature` are set"),
    fingerprint: z
      .string()
      .max(255)
      .optional()
      .describe(
        "Fingerprint of the public key of the login. Requires `signature`. Omit it if `password` is set",
      ),
    signature: z.string().max(8192).optional().describe("Signature, base64"),
  }),
  success: { body: terminalToken },
  errors: { 400: "a field is missing or not allowed" },
  limit: { kind: "login" },
});

export const streamWebTerminal = defineOperation({
  id: "streamWebTerminal",
  part: "Sessions",
  summary:
    "Open a web terminal as a WebSocket of text messages. The service sends the terminal's output unchanged. The client " +
    'sends JSON objects: input as `{"kind":1,"data":[bytes]}`, a new size as `{"kind":2,"data":{"cols":80,"rows":24}}`',
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
