import { aliasScenarios } from "./aliasScenarios.ts";
import { lifeScenarios } from "./lifeScenarios.ts";
import { protectScenarios } from "./protectScenarios.ts";
import { replacementScenarios } from "./replacementScenarios.ts";
import type { Scenario } from "./scenario.ts";
import { targetScenarios } from "./targetScenarios.ts";

/** What both engines are put through. Where a step fails, all that it could have done depends on one another. */
export const scenarios: Scenario[] = [
  ...lifeScenarios,
  ...replacementScenarios,
  ...aliasScenarios,
  ...protectScenarios,
  ...targetScenarios,
];
