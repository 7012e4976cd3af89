import type { liveConnections, PublicOperations } from "@gatehouse-access/sdk/contract";
import { NotImplementedError } from "../../errors.ts";
import type { Handlers } from "../../http/handler.ts";

/** @throws NotImplementedError always, so that callers can tell this service from one without the operation */
async function refuse(): Promise<never> {
  throw new NotImplementedError("live connections to devices come in a later version of this service");
}

export const liveConnectionHandlers: Handlers<
  Pick<PublicOperations, keyof typeof liveConnections & keyof PublicOperations>
> = {
  deviceConnection: refuse,
  deviceRevdial: refuse,
  openWebTerminal: refuse,
  streamWebTerminal: refuse,
};
