import { aliasScenarios } from "./aliasScenarios.ts";
import { lifeScenarios } from "./lifeScenarios.ts";
import { protectScenarios } from "./protectScenarios.ts";
import { replacementScenarios } from "./replacementScenarios.ts";
import type { Scenario } from "./scenario.ts";
import { targetScenarios } from "./targetScenarios.ts";

/**
 * The scenarios for both engines. All resources of a failing step depend on each other, so only one outcome is
 * possible.
 */
export const scenarios: Scenario[] = [
  ...lifeScenarios,
  ...replacementScenarios,
  ...aliasScenarios,
  ...protectScenarios,
  ...targetScenarios,
];
