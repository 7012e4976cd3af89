import fc from "fast-check";
import { expect, test } from "vitest";
import { ProtocolError } from "../../sdk/index.ts";
import { DEEPEST_JSON, JsonDepthError, parseJson } from "../../sdk/json.ts";
import { failure, start } from "./scriptedClient.ts";

const nested = (levels: number, open = "[", close = "]") => open.repeat(levels) + close.repeat(levels);

test("parses JSON like JSON.parse, with any characters in strings", () => {
  const brackets = fc.string({ unit: fc.constantFrom("[", "{", '"', "\\", "]", "a"), maxLength: 2000 });
  fc.assert(
    fc.property(fc.oneof(fc.jsonValue(), brackets, fc.array(brackets)), (value) => {
      expect(parseJson(JSON.stringify(value))).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
});

test("throws a SyntaxError for invalid JSON, like JSON.parse", () => {
  const unit = fc.constantFrom("[", "{", '"', "\\", "]", "}", ",", "1");
  fc.assert(
    fc.property(fc.string({ unit, maxLength: 40 }), (text) => {
      const outcome = (parse: (text: string) => unknown) => {
        try {
          return { value: parse(text) };
        } catch (error) {
          return (error as Error).name;
        }
      };
      expect(outcome(parseJson)).toEqual(outcome(JSON.parse));
    }),
  );
});

test("limits the levels of arrays and objects", () => {
  expect(parseJson(nested(DEEPEST_JSON))).toHaveLength(1);
  const mixed = nested(DEEPEST_JSON / 2, '[{"a":', "}]").replace(":}", ":1}");
  expect(parseJson(mixed)).toHaveLength(1);
  for (const text of [nested(DEEPEST_JSON + 1), `[${mixed}]`, nested(5_000_000), "[".repeat(5_000_000)]) {
    expect(() => parseJson(text)).toThrow(JsonDepthError);
  }
});

test.each([
  ["the response", 200],
  ["the message of an error", 500],
])("rejects 5 million levels in %s", async (_, status) => {
  const { server, client } = await start();
  server.always({ status, body: nested(5_000_000) });
  const error = await failure(client.getTags(), status === 200 ? ProtocolError : Error);
  expect(error.message).not.toContain("[[");
  if (status !== 200) return;
  expect(error).toMatchObject({ limit: { kind: "depth", most: DEEPEST_JSON }, outcome: "none" });
  expect(error.message).toContain(`The response is nested deeper than ${DEEPEST_JSON} levels`);
});
