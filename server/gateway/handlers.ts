import { type Duplex, pipeline } from "node:stream";
import type { liveConnections, PublicOperations, peers } from "@gatehouse-access/sdk/contract";
import { BusyError, InvalidError, NotFoundError } from "../errors.ts";
import type { Context, Handler, Handlers } from "../http/handler.ts";
import { type WebSocketHandler, webSocketHandler } from "../http/listener/webSockets.ts";
import type { Transport } from "./agentTunnels/Transport.ts";
import { streamOver } from "./agentTunnels/Transport1.ts";
import type { Gateway } from "./Gateway.ts";
import { UnreachableError } from "./protocol.ts";
import { openWebTerminal, streamWebTerminal } from "./terminal/handlers.ts";

/** The handlers of live connections. */
export function liveConnectionHandlers(
  gateway: Gateway,
): Handlers<Pick<PublicOperations, keyof typeof liveConnections & keyof PublicOperations>> {
  return {
    deviceConnection: (context) => openTunnel(gateway, 1, context),
    agentConnection: (context) => openTunnel(gateway, 2, context),
    deviceRevdial: deviceRevdial(gateway),
    openWebTerminal,
    streamWebTerminal: streamWebTerminal(gateway),
  };
}

type Peers = Pick<typeof peers, "openDeviceStream" | "passPickUp">;

/** The handlers of requests from other instances. */
export const peerHandlers = (gateway: Gateway): Handlers<Peers> => ({
  openDeviceStream: openDeviceStream(gateway),
  passPickUp: passPickUp(gateway),
});

type HandlerOf<Id extends keyof PublicOperations> = (gateway: Gateway) => Handler<PublicOperations[Id]>;

/** Prepares the tunnel of a device's agent. */
async function openTunnel(
  { agentTunnels }: Gateway,
  transport: Transport["version"],
  { identity, request }: Pick<Context<PublicOperations["deviceConnection"]>, "identity" | "request">,
): Promise<WebSocketHandler> {
  if (!("uid" in identity)) throw new InvalidError("Authorization: only the token of a device is allowed");
  const { uid, tenant: tenantId, proven } = identity;
  const { network, address, id: requestId } = request;
  return agentTunnels.open({ uid, tenantId, transport, proven, network, address, requestId });
}

/** Passes all bytes between two streams in both directions, until one stream ends. */
const passTo = (other: Duplex): WebSocketHandler =>
  webSocketHandler((socket) => {
    const stream = streamOver(socket);
    // Ignore stream errors: `pipeline` closes both streams, and the cause does not matter.
    pipeline(stream, other, stream, () => {});
  });

/**
 * Handles the request of an agent that picks up an announced connection.
 * @throws InvalidError the announced connection no longer exists, or was already picked up
 */
const deviceRevdial: HandlerOf<"deviceRevdial"> =
  ({ instanceId, agentTunnels, instances }) =>
  async ({ query }) => {
    const { "revdial.dialer": dialer = "", uuid = "" } = query;
    const unknown = () => new InvalidError("uuid: no connection with this id is waiting to be picked up");
    if (dialer !== instanceId) {
      try {
        return passTo(await instances.passOn(dialer, uuid));
      } catch (error) {
        throw error instanceof UnreachableError ? unknown() : error;
      }
    }
    const pickUp = agentTunnels.dials.pickUp(uuid);
    if (pickUp === undefined) throw unknown();
    return pickUp;
  };

const openDeviceStream =
  ({ agentTunnels }: Gateway): Handler<Peers["openDeviceStream"]> =>
  async ({ params, query }) => {
    if (!agentTunnels.has(params.uid)) throw new NotFoundError("this instance has no tunnel to the device");
    try {
      return passTo(await agentTunnels.connect(params.uid, query.session));
    } catch (error) {
      throw error instanceof UnreachableError ? new BusyError(`the device ${error.message}`) : error;
    }
  };

const passPickUp =
  ({ agentTunnels }: Gateway): Handler<Peers["passPickUp"]> =>
  async ({ params }) => {
    const pickUp = agentTunnels.dials.pickUp(params.id);
    if (pickUp === undefined)
      throw new NotFoundError("no connection with this id is waiting to be picked up");
    return pickUp;
  };
