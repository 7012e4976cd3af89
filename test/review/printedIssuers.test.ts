import { expect, test } from "vitest";
import { valueText } from "../../provider/drift/driftReport.ts";
import { workloadSentence } from "../../provider/resources/trustedWorkload.ts";
import { PLAIN } from "../../provider/style.ts";
import { valueJson } from "../../provider/words.ts";
import { printableIssuer } from "../../sdk/errors.ts";

const LOOK_ALIKE = "https://gitl\u0430b.com";
const SHOWN = 'https://xn--gitlb-7ve.com (written as "https://gitl\\u{430}b.com")';

test.each([
  ["https://gitlab.com", "https://gitlab.com"],
  ["https://gitlab.com/", "https://gitlab.com/"],
  ["https://xn--gitlb-7ve.com", "https://xn--gitlb-7ve.com"],
  [LOOK_ALIKE, SHOWN],
  ["https://\uff47itlab.com", 'https://gitlab.com (written as "https://\\u{ff47}itlab.com")'],
  ["https://h\\@gitlab.com", 'https://h/@gitlab.com (written as "https://h\\\\@gitlab.com")'],
  ["https://gitlab.com@h", '"https://gitlab.com@h"'],
  ["https://gitlab.com\n", 'https://gitlab.com (written as "https://gitlab.com\\n")'],
  ["gitl\u0430b", '"gitl\\u{430}b"'],
])("the issuer %j is printed as %s", (issuer, shown) => {
  expect(printableIssuer(issuer)).toBe(shown);
});

test("a review shows an issuer that looks like another issuer in ASCII", () => {
  const accepts = {
    issuer: LOOK_ALIKE,
    audience: "gatehouse",
    claims: { sub: "x" },
    maxSessionMinutes: 60,
    singleUse: false,
  };
  const added = workloadSentence({ change: "added", name: "deploy", to: "operator", accepts }, PLAIN);
  expect(added).toContain(`tokens of ${SHOWN} for gatehouse`);
  expect(added).not.toContain(LOOK_ALIKE);
});

test("drift reports and previews show URLs that look like other URLs in ASCII, and other texts unchanged", () => {
  expect(valueText(LOOK_ALIKE)).toMatch(/^https:\/\/xn--gitlb-7ve\.com \(written as /);
  expect(valueJson({ issuer: LOOK_ALIKE })).not.toContain("\u0430");
  expect(valueJson(["Анна", "https://gitlab.com", 7, undefined])).toBe(
    '["Анна","https://gitlab.com",7,null]',
  );
  expect(valueJson(undefined)).toBe("nothing");
});
