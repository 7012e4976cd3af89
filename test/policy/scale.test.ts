import { expect, test } from "vitest";
import {
  type AccessRule,
  type AccessSubject,
  evaluateAccess,
  firewallDecides,
  grantsOf,
  keyAdmits,
} from "../../sdk/policy/index.ts";
import { LargePolicy, randomNumbers } from "./largePolicy.ts";

const DECISIONS = 5_000;

test("the grants of a policy with 2,000 devices, 200 keys and 50 rules agree with single decisions", () => {
  const { policy, evaluated } = new LargePolicy({
    devices: 2_000,
    keys: 200,
    rules: 50,
    logins: 8,
    addresses: 8,
  });
  const granted = new Map<AccessSubject, Map<string, AccessRule | null>>();
  const duplicates: string[] = [];
  const access = evaluateAccess(policy, evaluated);
  const nameOf = (login: string, address: string, uid: string) => JSON.stringify([login, address, uid]);
  for (const { subject, login, addresses, rule, devices } of grantsOf(access)) {
    const rules = granted.get(subject) ?? new Map<string, AccessRule | null>();
    granted.set(subject, rules);
    for (const address of addresses) {
      for (const uid of devices) {
        const name = nameOf(login, address, uid);
        if (rules.has(name)) duplicates.push(name);
        rules.set(name, rule);
      }
    }
  }

  expect(duplicates).toEqual([]);

  const below = randomNumbers(2);
  const one = <T>(all: readonly T[]): T => all[below(all.length)] as T;
  const counts = { admitted: 0, allowed: 0 };
  for (let count = 0; count < DECISIONS; count += 1) {
    const device = one(policy.devices);
    const [login, address] = [one(evaluated.logins), one(evaluated.addresses)];
    let key = one(policy.keys);
    // Most random keys do not admit the login to the device. So in every second round, the test picks up to 20 keys
    // until a key admits it.
    for (let draws = count % 2 === 0 ? 20 : 0; draws > 0 && !keyAdmits(key, device, login); draws -= 1) {
      key = one(policy.keys);
    }
    const place = { deviceName: device.name, deviceTags: device.tags };
    const attempt = { ...place, login, sourceIp: address, at: new Date() };
    const admitted = keyAdmits(key, device, login);
    const { allowed, rule } = firewallDecides(policy.rules, attempt);
    counts.admitted += Number(admitted);
    counts.allowed += Number(admitted && allowed);
    const expected = admitted && allowed ? rule : undefined;
    expect(granted.get(key)?.get(nameOf(login, address, device.uid))).toBe(expected);
  }
  expect(counts.allowed).toBeGreaterThan(100);
  expect(counts.admitted - counts.allowed).toBeGreaterThan(100);
});
