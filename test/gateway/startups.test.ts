import type { Socket } from "node:net";
import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import { Startups } from "../../server/gateway/ssh/Startups.ts";

/**
 * Adds connections from a network to {@link Startups}, which limits the connections that are not logged in. Returns
 * all added connections, and the list of those whose key exchange has begun.
 */
function connections(startups: Startups, network: string, count: number) {
  const begun: Socket[] = [];
  const sockets = Array.from({ length: count }, () => {
    const socket = new PassThrough() as unknown as Socket;
    startups.add(socket, network);
    startups.exchange(socket, () => begun.push(socket));
    return socket;
  });
  return { begun, sockets };
}

it("lets 16 connections of a network exchange keys at a time, independently of other networks", () => {
  const startups = new Startups(0);
  const crowd = connections(startups, "198.51.100.1", 40);
  const other = connections(startups, "198.51.100.2", 1);
  expect(crowd.begun).toEqual(crowd.sockets.slice(0, 16));
  expect(other.begun).toHaveLength(1);
  startups.shookHands(crowd.sockets[3] as Socket);
  startups.delete(crowd.sockets[4] as Socket);
  expect(crowd.begun).toEqual(crowd.sockets.slice(0, 18));
  startups.clear();
});

it("lets 128 connections exchange keys at a time, and then serves networks in turn", () => {
  const startups = new Startups(0);
  const first = Array.from({ length: 8 }, (_, index) => connections(startups, `203.0.113.${index}`, 16));
  const crowd = connections(startups, "198.51.100.1", 3);
  const other = connections(startups, "198.51.100.2", 3);
  expect([...crowd.begun, ...other.begun]).toEqual([]);
  for (const socket of first[0]?.sockets.slice(0, 4) ?? []) startups.shookHands(socket);
  expect([crowd.begun.length, other.begun.length]).toEqual([2, 2]);
  startups.clear();
});

it("drops the oldest connection of a network that has too many, even a waiting one", () => {
  const startups = new Startups(20);
  const crowd = connections(startups, "198.51.100.1", 25);
  expect(crowd.sockets.map(({ destroyed }) => destroyed)).toEqual([
    ...Array.from({ length: 5 }, () => true),
    ...Array.from({ length: 20 }, () => false),
  ]);
  startups.clear();
  expect(crowd.sockets.every(({ destroyed }) => destroyed)).toBe(true);
});
