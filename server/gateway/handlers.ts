import { type Duplex, pipeline } from "node:stream";
import type { liveConnections, PublicOperations, peers } from "@gatehouse-access/sdk/contract";
import type { WebSocket } from "ws";
import { BusyError, InvalidError, NotFoundError } from "../errors.ts";
import type { Handler, Handlers } from "../http/handler.ts";
import { Exchange } from "../http/webSockets.ts";
import { openWebTerminal, streamWebTerminal } from "./terminal/handlers.ts";
import { streamOver, UnreachableError } from "./tunnels/Tunnels.ts";

const deviceConnection: Handler<PublicOperations["deviceConnection"]> = async (context) => {
  const { services, identity, request } = context;
  if (!("uid" in identity)) throw new InvalidError("Authorization: must be the token of a device");
  const { uid, tenant: tenantId } = identity;
  return services.gateway.tunnels.open({ uid, tenantId, network: request.network });
};

/** Passes all bytes on in both directions, until one side ends. */
class Passage extends Exchange {
  readonly #other: Duplex;

  constructor(other: Duplex) {
    super();
    this.#other = other;
  }

  begin(socket: WebSocket): void {
    const stream = streamOver(socket);
    // Its outcome is that both have ended: neither side learns more of the other one.
    pipeline(stream, this.#other, stream, () => {});
  }
}

/** @throws InvalidError what was announced is gone, or was picked up already */
const deviceRevdial: Handler<PublicOperations["deviceRevdial"]> = async ({ services, query }) => {
  const { instanceId, tunnels, instances } = services.gateway;
  const { "revdial.dialer": dialer = "", uuid = "" } = query;
  const unknown = () => new InvalidError("uuid: no such connection waits to be picked up");
  if (dialer !== instanceId) {
    try {
      return new Passage(await instances.passOn(dialer, uuid));
    } catch (error) {
      throw error instanceof UnreachableError ? unknown() : error;
    }
  }
  const pickUp = tunnels.pickUp(uuid);
  if (pickUp === undefined) throw unknown();
  return pickUp;
};

const openDeviceStream: Handler<typeof peers.openDeviceStream> = async ({ services, params }) => {
  const { tunnels } = services.gateway;
  if (!tunnels.has(params.uid)) throw new NotFoundError("this instance holds no tunnel of the device");
  try {
    return new Passage(await tunnels.connect(params.uid));
  } catch (error) {
    throw error instanceof UnreachableError ? new BusyError(`the device ${error.message}`) : error;
  }
};

const passPickUp: Handler<typeof peers.passPickUp> = async ({ services, params }) => {
  const pickUp = services.gateway.tunnels.pickUp(params.id);
  if (pickUp === undefined) throw new NotFoundError("no such connection waits to be picked up");
  return pickUp;
};

/** The behaviour of live connections. */
export const liveConnectionHandlers: Handlers<
  Pick<PublicOperations, keyof typeof liveConnections & keyof PublicOperations>
> = { deviceConnection, deviceRevdial, openWebTerminal, streamWebTerminal };

/** The behaviour of what instances ask of each other. */
export const peerHandlers: Handlers<Pick<typeof peers, "openDeviceStream" | "passPickUp">> = {
  openDeviceStream,
  passPickUp,
};
