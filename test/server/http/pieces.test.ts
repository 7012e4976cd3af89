import { expect, test } from "vitest";
import { ListTurns } from "../../../server/http/limits/ListTurns.ts";
import {
  inPieces,
  itemsOf,
  PIECE_CHARACTERS,
  PieceTurns,
  serializeInPieces,
} from "../../../server/http/limits/pieces.ts";

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test("begins one piece in each turn, and owners take turns", async () => {
  const turns = new PieceTurns();
  const begun: string[] = [];
  const wait = async (owner: string, number: number) => {
    await turns.wait(owner);
    begun.push(`${owner}${number}`);
  };
  const all = [wait("a", 1), wait("a", 2), wait("a", 3), wait("b", 1), wait("b", 2)];
  expect(begun).toEqual([]);
  for (const order of ["a1", "a1 b1", "a1 b1 a2", "a1 b1 a2 b2", "a1 b1 a2 b2 a3"]) {
    await turn();
    expect(begun.join(" ")).toBe(order);
  }
  await Promise.all(all);
  expect([turns.isWaiting("a"), turns.isWaiting("b")]).toEqual([false, false]);
});

test("divides items by size into pieces, in order", async () => {
  const groups: (readonly number[])[] = [];
  const list = inPieces(
    [4, 4, 3, 20, 1, 1],
    { owner: "a", sizeOf: (item) => item, most: 10 },
    async (group) => {
      groups.push(group);
      return group.map((item) => item * 2);
    },
  );
  expect(await itemsOf(list.map((item) => item + 1))).toEqual([9, 9, 7, 41, 3, 3]);
  expect(groups).toEqual([[4, 4], [3], [20], [1, 1]]);
});

test("serializes a short list as one text, and a long list in pieces of UTF-8", async () => {
  expect(await serializeInPieces([], "a", JSON.stringify)).toBe("[]");
  expect(await serializeInPieces([1, "b"], "a", JSON.stringify)).toBe('[1,"b"]');
  const items = Array.from({ length: 10 }, (_, index) => `${index}${"ü".repeat(PIECE_CHARACTERS / 2)}`);
  const pieces = await serializeInPieces(items, "a", JSON.stringify);
  expect(pieces).toHaveLength(5);
  expect(JSON.parse(Buffer.concat(pieces as Buffer[]).toString())).toEqual(items);
});

test("further lists of an owner wait while a list of the owner is in pieces; other owners' lists begin", async () => {
  const waiting = new Set(["a"]);
  const turns = new ListTurns(500, () => 0, { isWaiting: (owner) => waiting.has(owner) });
  const begun: string[] = [];
  const request = (owner: string) =>
    turns.begin(owner, (end) => {
      begun.push(owner);
      end();
    });
  const accepted = Array.from({ length: 501 }, () => request("a"));
  expect(accepted.slice(0, 500)).not.toContain(false);
  expect(accepted.at(-1)).toBe(false);
  request("b");
  await turn();
  expect(begun).toEqual(["b"]);
  waiting.clear();
  await turn();
  await turn();
  expect(begun.slice(0, 2)).toEqual(["b", "a"]);
});
