import { ROLES, type Role } from "@gatehouse-access/sdk/contract";
import fc from "fast-check";

/**
 * An action of a history. The numbers in an action select existing objects: the number modulo the count of the objects
 * is the index.
 */
export type Step =
  | { readonly does: "invite" | "promote"; readonly by: By; readonly at: Target; readonly role: Role }
  | { readonly does: "remove"; readonly by: By; readonly at: Target }
  | { readonly does: "leave" | "switch"; readonly by: By; readonly at: Target }
  | { readonly does: "createKey"; readonly by: By; readonly role: Role | ""; readonly days: number }
  | { readonly does: "updateKey"; readonly by: By; readonly key: number; readonly role: Role }
  | { readonly does: "deleteKey"; readonly by: By; readonly key: number }
  | { readonly does: "login"; readonly user: number; readonly right: boolean }
  | { readonly does: "changePassword"; readonly by: By; readonly right: boolean }
  | { readonly does: "pass"; readonly seconds: number };

/** The credential with which the action is performed. */
export interface By {
  readonly credential: number;
  /**
   * Selects from all issued credentials, from valid credentials, or from valid tokens with at least the administrator's
   * role.
   */
  readonly from: "any" | "living" | "leading";
}

interface Target {
  readonly place: number;
  readonly user: number;
}

const number = fc.nat({ max: 999 });
const often = fc.constantFrom(true, true, true, false);
const by: fc.Arbitrary<By> = fc.record({
  credential: number,
  from: fc.constantFrom("any", "living", "living", "leading", "leading", "leading"),
});
// The namespace with index 0 has more members, so it is selected three times as often.
const at = fc.record({ place: fc.constantFrom(0, 0, 0, 1), user: number });
const role = fc.constantFrom<Role>(...ROLES);

/** Durations close to the ends of locks, and to the time after which wrong passwords no longer count. */
const SHORT = [30, 60, 120, 300, 3600];
/** Durations close to the lifetimes of tokens and keys. */
const LONG = [259_199, 259_200, 30 * 86_400 - 1, 30 * 86_400];

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ does: fc.constantFrom("invite", "promote"), by, at, role }) },
  { weight: 2, arbitrary: fc.record({ does: fc.constant("remove"), by, at }) },
  { weight: 3, arbitrary: fc.record({ does: fc.constantFrom("leave", "switch"), by, at }) },
  {
    weight: 4,
    arbitrary: fc.record({
      does: fc.constant("createKey"),
      by,
      role: fc.oneof(role, fc.constant("" as const)),
      days: fc.constantFrom(-1, 30, 60),
    }),
  },
  { weight: 2, arbitrary: fc.record({ does: fc.constant("updateKey"), by, key: number, role }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant("deleteKey"), by, key: number }) },
  { weight: 4, arbitrary: fc.record({ does: fc.constant("login"), user: number, right: often }) },
  { weight: 2, arbitrary: fc.record({ does: fc.constant("changePassword"), by, right: often }) },
  { weight: 2, arbitrary: fc.record({ does: fc.constant("pass"), seconds: fc.constantFrom(...SHORT) }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant("pass"), seconds: fc.constantFrom(...LONG) }) },
);

/** Generates sequences of 10 to 25 steps. */
export const histories = fc.array(step, { minLength: 10, maxLength: 25, size: "max" });
