import { expect, test } from "vitest";
import { z } from "zod";
import { serializerOf } from "../../../server/http/contract/serialization.ts";

const time = z.union([z.iso.datetime(), z.literal("never")]);
const schema = z.object({
  count: z.int().nullable(),
  time: time.nullable(),
  owner: z.object({ name: z.string() }).nullable(),
  either: z.union([z.string(), z.int()]),
  tags: z.array(z.string().nullable()),
});

test("serializes values that can be null, and omits fields that are not in the schema", () => {
  const serialize = serializerOf(schema);
  const full = {
    count: 7,
    time: "2026-01-02T03:04:05.678Z",
    owner: { name: "ana", secret: "x" },
    either: 'a"b',
    tags: ["x", null],
  };
  expect(JSON.parse(serialize(full))).toEqual({ ...full, owner: { name: "ana" } });
  const empty = { count: null, time: null, owner: null, either: 3, tags: [] };
  expect(JSON.parse(serialize(empty))).toEqual(empty);
});

test("refuses an object without a required field inside a value that can be null", () => {
  const body = { count: 1, time: "never", owner: {}, either: "a", tags: [] };
  expect(() => serializerOf(schema)(body)).toThrow("name");
});
