import { expect, test } from "vitest";
import { isInForce } from "../../sdk/policy/decisions.ts";
import { hasPassed, keyLapse } from "../../sdk/policy/expiry.ts";

const AT = new Date("2026-11-30T00:00:00Z");
const [BEFORE, AFTER] = ["2026-11-29T00:00:00Z", "2026-12-01T00:00:00Z"];

test("a text that is not a time has passed", () => {
  expect([BEFORE, AFTER, AT.toISOString(), "never"].map((time) => hasPassed(time, AT))).toEqual([
    true,
    false,
    true,
    true,
  ]);
});

test("a rule is in force while it is active and has not expired", () => {
  const rules = [true, false].flatMap((active) =>
    [BEFORE, AFTER].map((expiresAt) => ({ active, expiresAt })),
  );
  expect(rules.map((rule) => isInForce(rule, AT))).toEqual([false, true, false, false]);
});

test("a key lapses by its type, by its end, and by the membership of its owner", () => {
  const owned = { owner: "ana" };
  expect(keyLapse({ refusedType: "ssh-dss" }, undefined, AT)).toBe("type");
  expect(keyLapse({ expiresAt: BEFORE }, undefined, AT)).toBe("expired");
  expect(keyLapse(owned, undefined, AT)).toBe("owner");
  expect(keyLapse(owned, { isAccepted: false }, AT)).toBe("owner");
  expect(keyLapse(owned, { isAccepted: true, expiresAt: BEFORE }, AT)).toBe("owner");
  expect(keyLapse(owned, { isAccepted: true, expiresAt: AFTER }, AT)).toBeUndefined();
});
