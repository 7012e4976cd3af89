import type { PolicySize } from "../../test/policy/largePolicy.ts";

/** The fleet that is measured in full, and that the others differ from in one figure. */
export const FLEET: PolicySize = { devices: 10_000, keys: 1_000, rules: 200, logins: 8, addresses: 8 };

/** The figures that grow. */
export const GROWTH: Readonly<Record<string, readonly Partial<PolicySize>[]>> = {
  devices: [{ devices: 1_000 }, { devices: 10_000 }, { devices: 100_000 }],
  keys: [{ keys: 100 }, { keys: 1_000 }, { keys: 10_000 }],
  rules: [{ rules: 20 }, { rules: 200 }, { rules: 2_000 }],
  logins: [{ logins: 2 }, { logins: 8 }, { logins: 32 }],
  addresses: [{ addresses: 2 }, { addresses: 8 }, { addresses: 32 }],
};

/** Decisions that a policy of the size makes: each key on each device, by each login name from each address. */
export const decisionsOf = ({ devices, keys, logins, addresses }: PolicySize): number =>
  devices * keys * logins * addresses;
