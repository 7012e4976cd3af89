import { PROVIDER_KEY } from "../../valueMarks.ts";

/**
 * The code of its provider that a resource carries in the state. It only loads the installed code, and is constant and
 * tiny: the engine stores it twice for each resource, and runs the stored text even after an upgrade.
 */
export function providerText(resource: string): string {
  return `exports.handler=()=>require("@gatehouse-access/provider/dynamic").${resource}`;
}

/** The input by which a class says which resource it is: its URN. It is no part of any diff. */
export const LOGICAL_ID = "__logicalId";

/** The input by which a class says which state its resource is in. It is no part of any diff. */
export const STATE_ID = "__stateId";

/**
 * The output that keeps what the program said beside what the object shows: a dynamic provider that reads an object gets
 * no inputs. It is no part of any diff.
 */
export const OPEN_INPUTS = "__openInputs";

type Values = Readonly<Record<string, unknown>>;

const OF_DYNAMIC: readonly string[] = [PROVIDER_KEY, LOGICAL_ID, STATE_ID, OPEN_INPUTS];

/** The values without those that no definition has: what makes a resource a dynamic one, now or formerly. */
export const ownValues = (values: Values): Record<string, unknown> =>
  Object.fromEntries(Object.entries(values).filter(([name]) => !OF_DYNAMIC.includes(name)));

/** The values that no definition has. */
export const dynamicValues = (values: Values): Record<string, unknown> =>
  Object.fromEntries(Object.entries(values).filter(([name]) => OF_DYNAMIC.includes(name)));
