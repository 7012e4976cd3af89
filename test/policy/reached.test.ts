import { expect, test } from "vitest";
import {
  type AccessDevice,
  type AccessKey,
  type AccessRule,
  evaluateAccess,
  type NamespacePolicy,
} from "../../sdk/policy/index.ts";
import { device, key, rule } from "./lintSubjects.ts";

const devices = [device("web-1", "prod"), device("web-2", "prod"), device("lab-1")];
const evaluated = { logins: ["root", "ana"], addresses: ["10.0.0.1", "192.0.2.1"] };
const ana = key({ name: "ana", username: "^ana$", filter: { tags: ["prod"] } });
const root = key({ name: "root", username: "^root$", filter: { hostname: "^web-1$" } });
const deny = (more: Partial<AccessRule> = {}) =>
  rule("1", { action: "deny", sourceIp: "", username: "", filter: {}, ...more });
const policyOf = (keys: readonly AccessKey[], ...rules: AccessRule[]): NamespacePolicy => ({
  devices,
  keys,
  rules,
});
const reachedIn = (policy: NamespacePolicy, over = evaluated) => {
  const access = evaluateAccess(policy, over);
  return access.uidsOf(access.reached());
};
const uidsOf = (...some: readonly (AccessDevice | undefined)[]) => some.map((one) => one?.uid);
const [web1, web2] = devices;
const notAnaOnWeb2 = deny({ username: "^ana$", filter: { hostname: "^web-2$" } });

test("reached() returns devices that a key and the firewall allow for one login from one address", () => {
  expect(reachedIn(policyOf([]))).toEqual([]);
  expect(reachedIn(policyOf([ana, root]))).toEqual(uidsOf(web1, web2));
  expect(reachedIn(policyOf([ana, root], deny()))).toEqual([]);
  expect(reachedIn(policyOf([ana], deny({ sourceIp: "^10" })))).toEqual(uidsOf(web1, web2));
});

test("reached() omits a device if a key and the firewall allow only different logins", () => {
  expect(reachedIn(policyOf([ana, root], deny({ username: "^ana$" })))).toEqual(uidsOf(web1));
  expect(reachedIn(policyOf([ana, root], notAnaOnWeb2))).toEqual(uidsOf(web1));
});

test("reached() returns no device without evaluated logins or addresses", () => {
  const open = policyOf([key({ username: "", filter: {} })]);
  expect(reachedIn(open)).toEqual(uidsOf(...devices));
  expect(reachedIn(open, { ...evaluated, logins: [] })).toEqual([]);
  expect(reachedIn(open, { ...evaluated, addresses: [] })).toEqual([]);
});

test("reached() does not change the stored device sets", () => {
  const access = evaluateAccess(
    policyOf([ana, key({ name: "all", username: "", filter: {} })], notAnaOnWeb2),
    evaluated,
  );
  const before = access.uidsOf(access.verdict("ana", "10.0.0.1").open);
  expect(access.uidsOf(access.reached())).toEqual(access.uidsOf(access.reached()));
  expect(access.uidsOf(access.verdict("ana", "10.0.0.1").open)).toEqual(before);
  expect(access.uidsOf(access.devicesOf({}, false))).toEqual(uidsOf(...devices));
  expect(access.uidsOf(access.devicesOf(ana.filter, false))).toEqual(uidsOf(web1, web2));
});
