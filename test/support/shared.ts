import { afterAll, beforeAll } from "vitest";
import { type Fleet, startFleet } from "./fleet.ts";

/** Starts something for the tests beside this call, and stops it after them; its members are there in hooks and tests. */
export function shared<T extends { stop(): Promise<unknown> }>(start: () => Promise<T>): T {
  const members = {} as T;
  beforeAll(async () => {
    Object.assign(members, await start());
  });
  afterAll(() => members.stop?.());
  return members;
}

/** A fleet for the tests beside this call. */
export const sharedFleet = (...given: Parameters<typeof startFleet>): Fleet =>
  shared(() => startFleet(...given));
