import { expect, test } from "vitest";
import { areLoginsOf, loginNamesIn } from "../../sdk/policy/index.ts";

test.each<[pattern: string, names: readonly string[], isWhole: boolean]>([
  ["", ["*"], true],
  [".*", ["*"], true],
  ["^root$", ["root"], true],
  ["^(ana|root)$", ["ana", "root"], true],
  ["(^ana$|^root$)", ["ana", "root"], true],
  ["^(dev1)$|deploy", ["dev1", "deploy"], false],
  ["^(root|deploy.*)$", ["root", "deploy"], false],
  ["^adm|^root$", ["adm", "root"], false],
  ["^a[dm]$|^root$", ["root"], false],
  ["^adm[0-9]", [], false],
  ["root|", ["root"], false],
  ["^\\*$", [], false],
  ["(", [], false],
  ["^(?i)root$", [], false],
])("the login names of %j are %j", (pattern, names, isWhole) => {
  expect(loginNamesIn(pattern)).toEqual({ names, isWhole });
});

test("logins are those of a pattern only if they are exactly the names that the pattern matches", () => {
  expect(areLoginsOf(["root", "ana"], "^(ana|root)$")).toBe(true);
  expect(areLoginsOf(["root"], "^(ana|root)$")).toBe(false);
  expect(areLoginsOf(["root", "ana", "ben"], "^(ana|root)$")).toBe(false);
  expect(areLoginsOf(["root"], "^root")).toBe(false);
  expect(areLoginsOf(["*"], ".*")).toBe(true);
});
