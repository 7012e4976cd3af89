import { expect, it } from "vitest";
import { hasEnded } from "../../provider/model/validity.ts";
import { canonicalTime, DAY, HOUR, hasPassed, isTime, MINUTE, SECOND } from "../../sdk/times.ts";

const NOW = new Date("2026-11-30T00:00:00.000Z");

it("counts the units of time in milliseconds", () => {
  expect([SECOND, MINUTE, HOUR, DAY]).toEqual([1000, 60_000, 3_600_000, 86_400_000]);
});

it.each([
  ["a time before now", "2026-11-29T23:59:59.999Z", true, true],
  ["now", "2026-11-30T01:00:00+01:00", true, true],
  ["a time after now", "2026-11-30T00:00:00.001Z", false, false],
  ["a text that is not a time", "[secret]", true, false],
  ["the empty text, which is no end in a state", "", true, false],
])("%s: has passed for access, has ended in a state", (_what, time, passed, ended) => {
  expect([hasPassed(time, NOW), hasEnded(time, NOW)]).toEqual([passed, ended]);
});

it("returns the same canonical form for equal times", () => {
  expect(canonicalTime("2026-12-01T20:00:00+02:00")).toBe("2026-12-01T18:00:00.000Z");
  expect(() => canonicalTime("never")).toThrow(RangeError);
  expect(["2026-12-01T18:00:00Z", "never"].map(isTime)).toEqual([true, false]);
});
