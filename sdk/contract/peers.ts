import { z } from "zod";
import { NO_WEB_SOCKET, STREAM_MESSAGE_MAX } from "./liveConnections.ts";
import { defineOperation } from "./operation.ts";
import { uid } from "./schemas.ts";

/**
 * Operations that one instance of the service calls on another instance. The caller of `openDeviceStream` needs a
 * connection to a device whose tunnel is on the called instance. The caller of `passPickUp` received an agent's request
 * to accept a connection that the called instance announced.
 */
const ofPeer = { part: "Private network", auth: ["internal"], scope: "internal", method: "GET" } as const;
const peerStream = { success: { status: 101 }, bodyLimit: STREAM_MESSAGE_MAX } as const;

export const openDeviceStream = defineOperation({
  ...ofPeer,
  ...peerStream,
  id: "openDeviceStream",
  summary:
    "Open a connection to the SSH server of a device's agent for another instance of the service. This instance " +
    "must have the device's tunnel. The connection is a WebSocket of binary messages. The bytes of the messages are the SSH protocol",
  path: "/internal/devices/{uid}/stream",
  params: { uid },
  query: { session: z.string().regex(/^[0-9a-f]{64}$/, "must be the id of a session") },
  errors: {
    400: NO_WEB_SOCKET,
    404: "this instance has no tunnel to the device",
    503: "the device does not respond",
  },
});

export const passPickUp = defineOperation({
  ...ofPeer,
  ...peerStream,
  id: "passPickUp",
  summary:
    "Accept a connection that this instance announced, as a WebSocket. The caller is another instance of " +
    "the service, which received the agent's request",
  path: "/internal/dials/{id}",
  params: { id: z.string().max(255) },
  errors: { 400: NO_WEB_SOCKET, 404: "no such connection is waiting" },
});
