import type { fleet, PublicOperations } from "@gatehouse-access/sdk/contract";
import type { Handlers } from "../../http/handler.ts";
import { resolveDevice } from "./resolveDevice.ts";
import { getStats } from "./stats.ts";

export const fleetHandlers: Handlers<Pick<PublicOperations, keyof typeof fleet & keyof PublicOperations>> = {
  resolveDevice,
  getStats,
};
