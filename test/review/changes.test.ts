import { describe, expect, test } from "vitest";
import { accessLines } from "../../provider/privileges/accessLines.ts";
import { definitionsByName } from "../../provider/resources/index.ts";
import { memberChanges } from "../../provider/resources/member/index.ts";
import { evaluateAccess, type NamespacePolicy } from "../../sdk/policy/index.ts";
import { member } from "./support/planned.ts";
import { accessDevice, accessKey, accessRule } from "./support/policyObjects.ts";

const devices = [accessDevice("web-1", "prod"), accessDevice("web-2", "prod"), accessDevice("lab")];
const evaluated = { logins: ["root", "deploy"], addresses: ["10.0.0.1", "192.0.2.1"] };
const over = (some: Partial<NamespacePolicy>) =>
  evaluateAccess({ devices, keys: [], rules: [], ...some }, evaluated);
const linesOf = (before: Partial<NamespacePolicy>, after: Partial<NamespacePolicy>) =>
  accessLines(over(before), over(after)).map(({ change, keys, logins, addresses, anyAddress, devices }) => [
    change,
    keys.map(({ name }) => name).join("+"),
    logins.join("+"),
    anyAddress ? "any" : addresses.join("+"),
    devices.join("+"),
  ]);

describe("access changes", () => {
  const ana = accessKey("ana", { filter: { tags: ["prod"] } });
  const bob = accessKey("bob", { filter: ana.filter });

  test("merge logins and keys that gain the same access", () => {
    expect(linesOf({}, { keys: [ana, bob] })).toEqual([
      ["gained", "ana+bob", "root+deploy", "any", "web-1+web-2"],
    ]);
  });

  test("list lost access first, and list addresses separately if a rule distinguishes them", () => {
    const office = accessRule("1", { sourceIp: "^10\\.", filter: { hostname: "^web-1$" } });
    const carl = accessKey("carl", { username: "^root$", filter: { hostname: "^lab$" } });
    expect(linesOf({ keys: [ana] }, { keys: [ana, carl], rules: [office] })).toEqual([
      ["lost", "ana", "root+deploy", "10.0.0.1", "web-1"],
      ["gained", "carl", "root", "any", "lab"],
    ]);
  });

  test("are empty if two policies are equivalent", () => {
    const same = { ...ana, filter: { hostname: "^web-" } };
    const inactive = accessRule("1", { active: false });
    expect(linesOf({ keys: [ana] }, { keys: [same], rules: [inactive] })).toEqual([]);
  });
});

describe("member changes", () => {
  test("are added and removed members, and changed roles", () => {
    const before = [member("ana", "operator"), member("bob", "observer")];
    const after = [member("ana", "administrator"), member("carl", "observer")];
    expect(memberChanges(before, after)).toEqual([
      { change: "role", email: "ana@example.com", from: "operator", to: "administrator" },
      { change: "removed", email: "bob@example.com", from: "observer" },
      { change: "added", email: "carl@example.com", to: "observer" },
    ]);
  });

  test("list no keys without an owner as keys of a removed member whose id is not known", () => {
    const key = (name: string, ownerId: string) =>
      ({ definition: definitionsByName.PublicKey, id: name, name, state: { ownerId } }) as const;
    const unknown = { ...member("ana", "observer"), id: "" };
    expect(memberChanges([unknown], [], [key("a", ""), key("b", "x")])).toEqual([
      { change: "removed", email: "ana@example.com", from: "observer" },
    ]);
  });
});
