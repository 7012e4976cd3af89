import { aliasScenarios } from "./aliasScenarios.ts";
import { lifeScenarios } from "./lifeScenarios.ts";
import { protectScenarios } from "./protectScenarios.ts";
import { replacementScenarios } from "./replacementScenarios.ts";
import type { Scenario } from "./scenario.ts";
import { targetScenarios } from "./targetScenarios.ts";

/**
 * The scenarios for both engines. The resources of a step that fails form a chain of dependencies, so the order of the
 * operations is fixed and the step has only one possible outcome.
 */
export const scenarios: Scenario[] = [
  ...lifeScenarios,
  ...replacementScenarios,
  ...aliasScenarios,
  ...protectScenarios,
  ...targetScenarios,
];
