import { z } from "zod";
import { defineOperation } from "./operation.ts";
import { model, uid } from "./schemas.ts";

const NOT_YET = "live connections to devices come in a later version";

export const terminalToken = model(
  "TerminalToken",
  "What a web terminal is opened with",
  z.object({ token: z.string() }),
);

export const deviceConnection = defineOperation({
  id: "deviceConnection",
  part: "Devices and agents",
  summary: "The tunnel of a device's agent, a WebSocket; not served yet",
  method: "GET",
  path: "/ssh/connection",
  auth: ["device"],
  scope: "device",
  success: { status: 101 },
  errors: { 400: "device cannot be resolved from the token", 501: NOT_YET },
});

export const deviceRevdial = defineOperation({
  id: "deviceRevdial",
  part: "Devices and agents",
  summary: "An agent picks up a connection that was announced in its tunnel, a WebSocket; not served yet",
  method: "GET",
  path: "/ssh/revdial",
  auth: ["none"],
  scope: "public",
  query: {
    "revdial.dialer": z.string().max(255).optional(),
    uuid: z.string().max(255).optional(),
  },
  success: { status: 101 },
  errors: { 400: "dialer id unknown", 501: NOT_YET },
});

export const openWebTerminal = defineOperation({
  id: "openWebTerminal",
  part: "Sessions",
  summary: "Credentials of a web terminal, for 30 seconds; not served yet",
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
  errors: { 400: "a field is missing or not allowed", 501: NOT_YET },
});

export const streamWebTerminal = defineOperation({
  id: "streamWebTerminal",
  part: "Sessions",
  summary: "The web terminal, a WebSocket; not served yet",
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
  errors: { 501: NOT_YET },
});
