import { afterAll, beforeAll } from "vitest";

/**
 * Starts a test resource, such as a fleet, before the tests of the surrounding block, and stops it after them. Returns
 * an object that has the resource's properties in hooks and tests.
 */
export function shared<T extends { stop(): Promise<unknown> }>(start: () => Promise<T>): T {
  const members = {} as T;
  beforeAll(async () => {
    Object.assign(members, await start());
  });
  afterAll(() => members.stop?.());
  return members;
}
