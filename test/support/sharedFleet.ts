import { type Fleet, startFleet } from "./fleet.ts";
import { shared } from "./shared.ts";

/** Starts a fleet for the surrounding tests. */
export const sharedFleet = (...given: Parameters<typeof startFleet>): Fleet =>
  shared(() => startFleet(...given));
