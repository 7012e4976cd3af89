import type { Plan } from "../../engine/index.ts";
import type { Connection } from "../../resources/connection.ts";
import { readEstate } from "../estate.ts";
import { actorOf } from "../guards/actor.ts";
import { liveState, plannedState } from "../planned/namespaceState.ts";
import { plannedEstate } from "../planned/plannedEstate.ts";
import { domainOfEnds, factsOf } from "./domainOfEnds.ts";
import { type PolicyTestReport, runPolicyTests } from "./policyTests.ts";

/** What came of the policy tests beside a program, on the stack's namespace. */
export interface TestedNamespace extends PolicyTestReport {
  /** Id of the namespace. */
  readonly tenant: string;
  /** What could not be known, as sentences: the tests may have missed it. */
  readonly unknown: readonly string[];
}

/**
 * Runs the policy tests beside a program on the namespace as it is.
 * @param folder the program's
 * @throws RequestError when the namespace cannot be read
 */
export async function testLive(connection: Connection, folder: string): Promise<TestedNamespace> {
  const estate = await readEstate(await connection.tenant(undefined));
  const { tenant, unknown, policy } = estate;
  const facts = factsOf(estate, liveState(estate), domainOfEnds([policy], estate));
  return { ...(await runPolicyTests(folder, facts)), tenant, unknown };
}

/**
 * Runs the policy tests beside a program on the namespace as a plan will leave it.
 * @param folder the program's
 * @param plan a preview with values
 * @throws RequestError when the namespace cannot be read
 */
export async function testPlan(connection: Connection, folder: string, plan: Plan): Promise<TestedNamespace> {
  const estate = await readEstate(await connection.tenant(undefined));
  const { role } = actorOf(await connection.client.identity(), estate);
  const planned = plannedEstate(estate, plan);
  const after = plannedState(estate, planned, role);
  const facts = factsOf(estate, after, domainOfEnds([estate.policy, after.policy], estate));
  return {
    ...(await runPolicyTests(folder, facts)),
    tenant: estate.tenant,
    unknown: [...estate.unknown, ...after.unknown, ...planned.notes],
  };
}
