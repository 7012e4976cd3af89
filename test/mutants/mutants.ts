import { agentMutants } from "./agentMutants.ts";
import type { Mutant } from "./mutant.ts";
import { providerMutants } from "./providerMutants.ts";
import { sdkMutants } from "./sdkMutants.ts";
import { serverMutants } from "./serverMutants.ts";

/** All mutants. */
export const mutants: readonly Mutant[] = [
  ...providerMutants,
  ...serverMutants,
  ...sdkMutants,
  ...agentMutants,
];
