import { z } from "zod";
import { NO_WEB_SOCKET, STREAM_MESSAGE_MAX } from "./liveConnections.ts";
import { defineOperation } from "./operation.ts";
import { uid } from "./schemas.ts";

/** What an instance sends to another one: streams to devices, and agents that pick up, which reached the wrong one. */
const ofPeer = { part: "Private network", auth: ["internal"], scope: "internal", method: "GET" } as const;
const peerStream = { success: { status: 101 }, bodyLimit: STREAM_MESSAGE_MAX } as const;

export const openDeviceStream = defineOperation({
  ...ofPeer,
  ...peerStream,
  id: "openDeviceStream",
  summary:
    "A connection to a device whose tunnel this instance holds, for another instance: a WebSocket of binary messages, " +
    "which are the device's own",
  path: "/internal/devices/{uid}/stream",
  params: { uid },
  errors: {
    400: NO_WEB_SOCKET,
    404: "this instance holds no tunnel of the device",
    503: "the device does not answer",
  },
});

export const passPickUp = defineOperation({
  ...ofPeer,
  ...peerStream,
  id: "passPickUp",
  summary:
    "An agent that reached another instance picks up a connection which this instance has announced, a WebSocket",
  path: "/internal/dials/{id}",
  params: { id: z.string().max(255) },
  errors: { 400: NO_WEB_SOCKET, 404: "no such connection waits to be picked up" },
});
