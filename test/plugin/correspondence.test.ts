import { expect, test } from "vitest";
import { Correspondence } from "./recording/correspondence.ts";

const id = (digit: number) => `${String(digit).repeat(8)}-1111-4111-8111-111111111111`;

test("a value that differs from run to run stands for one other, wherever it is", () => {
  const values = new Correspondence();
  expect(
    values.compare(
      { id: `${id(1)}/a`, at: "2026-01-01T00:00:00Z" },
      { id: `${id(2)}/a`, at: "2027-01-01T00:00:00.5Z" },
    ),
  ).toEqual([]);
  expect(values.toLive({ text: `of ${id(1)}`, list: [id(1)] })).toEqual({
    text: `of ${id(2)}`,
    list: [id(2)],
  });
  expect(values.compare(id(1), id(2))).toEqual([]);
  expect(values.compare({ a: [{ b: id(1) }] }, { a: [{ b: id(3) }] })).toEqual([
    { path: "a.0.b", recorded: id(1), live: id(3) },
  ]);
  expect(values.compare(id(4), id(2))).toHaveLength(1);
});

test("two times may be one in another run, one time may not be two", () => {
  const values = new Correspondence();
  const at = (second: number) => `2026-01-01T00:00:0${second}Z`;
  expect(values.compare([at(1), at(2)], [at(3), at(3)])).toEqual([]);
  expect(values.compare(at(1), at(4))).toHaveLength(1);
});

test("what the engine made up stays as it is", () => {
  const values = new Correspondence();
  expect(values.toLive(id(1))).toBe(id(1));
  expect(values.compare(id(1), id(2))).toHaveLength(1);
});

test("what is known by a name is so from the start; a secret is learned", () => {
  const values = new Correspondence();
  values.tell({ url: "http://127.0.0.1:1" });
  expect(values.compare("«url»/x", "http://127.0.0.1:1/x")).toEqual([]);
  expect(values.compare("«url»/x", "http://127.0.0.1:2/x")).toHaveLength(1);
  expect(() => values.toLive("«secret 1»")).toThrow("«secret 1» is known to nobody");
  expect(values.compare("«secret 1»", "any text")).toEqual([]);
  expect(values.toLive("«secret 1»")).toBe("any text");
});

test.each([
  ["another text", "a", "b"],
  ["another number", 1, 2],
  ["another type", "1", 1],
  ["a field that is missing", { a: 1 }, {}],
  ["a field too many", {}, { a: 1 }],
  ["a list for an object", [], {}],
  ["another order", ["a", "b"], ["b", "a"]],
  ["an id that is no id", id(1), "gone"],
  ["text around an id", `${id(1)}/a`, `${id(1)}/b`],
  ["null for nothing", { a: null }, {}],
])("%s is a difference", (_what, recorded, live) => {
  expect(new Correspondence().compare(recorded, live)).not.toEqual([]);
});
