import { expect, test } from "vitest";
import { createTrustedWorkload } from "../../sdk/contract/trustedWorkloads.ts";
import { ISSUER_LENGTH, normalizedIssuer, printableIssuer } from "../../sdk/issuer.ts";

const issuer = createTrustedWorkload.body.shape.issuer;
const dots = (count: number) => ".".repeat(count);

// Each of these tests takes minutes if the time grows with the square of the length.

test("rejects an issuer that is too long without parsing it, so the only issue is the length", () => {
  const text = `https://${dots(1_000_000)}x`;
  expect(issuer.safeParse(text).error?.issues).toMatchObject([{ code: "too_big", maximum: ISSUER_LENGTH }]);
});

test("accepts an issuer of the maximum length, and rejects a longer one", () => {
  const longest = `https://id.example/${"x".repeat(ISSUER_LENGTH)}`.slice(0, ISSUER_LENGTH);
  expect(issuer.safeParse(longest).success).toBe(true);
  expect(issuer.safeParse(`${longest}x`).success).toBe(false);
});

test("the normalized form of a host with a million dots is computed in linear time", () => {
  expect(normalizedIssuer(`https://${dots(1_000_000)}`)).toBeUndefined();
  expect(normalizedIssuer(`https://${dots(1_000_000)}x`)).toBe(`https://${dots(1_000_000)}x`);
});

test("the normalized form has no dots at the end of the host", () => {
  expect(normalizedIssuer("https://id.example.../a")).toBe("https://id.example/a");
});

test("an issuer that is too long is printed with escapes, without its normalized form", () => {
  const path = "x".repeat(ISSUER_LENGTH);
  expect(printableIssuer(`https://gitl\u0430b.com/${path}`)).toBe(`"https://gitl\\u{430}b.com/${path}"`);
});
