import { z } from "zod";
import { NO_WEB_SOCKET, STREAM_MESSAGE_MAX } from "./liveConnections.ts";
import { defineOperation } from "./operation.ts";
import { uid } from "./schemas.ts";

/**
 * Requests between two instances of the service: streams to devices, and pick-ups of connections by agents that reached
 * another instance than the one with the connection.
 */
const ofPeer = { part: "Private network", auth: ["internal"], scope: "internal", method: "GET" } as const;
const peerStream = { success: { status: 101 }, bodyLimit: STREAM_MESSAGE_MAX } as const;

export const openDeviceStream = defineOperation({
  ...ofPeer,
  ...peerStream,
  id: "openDeviceStream",
  summary:
    "Open a connection to a device for another instance of the service. This instance must have the " +
    "device's tunnel. The connection is a WebSocket of binary messages, which are the messages of the " +
    "device's agent",
  path: "/internal/devices/{uid}/stream",
  params: { uid },
  errors: {
    400: NO_WEB_SOCKET,
    404: "this instance has no tunnel of the device",
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
