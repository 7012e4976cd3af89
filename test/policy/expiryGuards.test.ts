import { expect, test } from "vitest";
import { isInForce } from "../../sdk/policy/decisions.ts";
import { hasExpired, keyLapse } from "../../sdk/policy/expiry.ts";

const AT = new Date("2026-11-30T00:00:00Z");
const [BEFORE, AFTER] = ["2026-11-29T00:00:00Z", "2026-12-01T00:00:00Z"];

test("an object gives no access after its end, or with an end that is not a time", () => {
  const ends = [undefined, AFTER, BEFORE, AT.toISOString(), "never", ""];
  expect(ends.map((expiresAt) => hasExpired({ expiresAt }, AT))).toEqual([
    false,
    false,
    true,
    true,
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
