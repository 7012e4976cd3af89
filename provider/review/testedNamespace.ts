import { ConfigurationError } from "@gatehouse-access/sdk";
import type { Plan } from "../engine/index.ts";
import { domainFor, type Estate, inOrder, readEstate } from "../estate/namespaceState.ts";
import { plannedEstate } from "../plan/planned/plannedEstate.ts";
import { namespacesOf, onService } from "../plan/steps.ts";
import type { PolicyTestReport } from "../policyTests/results.ts";
import { runPolicyTests } from "../policyTests/runPolicyTests.ts";
import type { Connection } from "../service/connection.ts";
import { byText } from "../words.ts";
import { actorOf } from "./guards/planProblems.ts";

/** What came of the policy tests beside a program, on the stack's namespace. */
export interface TestedNamespace extends PolicyTestReport {
  /** Id of the namespace. */
  readonly tenant: string;
  /** What could not be looked at, as sentences: the tests say nothing about it. */
  readonly unseen: readonly string[];
  /** What else could not be known, as sentences: the tests may have missed it. */
  readonly unknown: readonly string[];
}

/**
 * Runs the policy tests in a program's folder on the live namespace.
 * @throws RequestError if the namespace cannot be read
 */
export async function testLive(connection: Connection, folder: string): Promise<TestedNamespace> {
  const estate = inOrder(await readEstate(connection));
  const domain = domainFor(estate, [estate.policy]);
  const { tenant, unseen, unknown } = estate;
  return { ...(await runPolicyTests(folder, { ...estate, domain })), tenant, unseen, unknown };
}

/**
 * Runs the policy tests in a program's folder on the namespace after a plan.
 * @param plan a preview with values
 * @param beside what of the plan could not be checked, as sentences
 * @throws RequestError if the namespace cannot be read
 */
export async function testPlan(
  connection: Connection,
  folder: string,
  plan: Plan,
  beside: readonly string[] = [],
): Promise<TestedNamespace> {
  const { before, after } = await plannedNamespace(connection, plan);
  const domain = domainFor(before, [before.policy, after.policy]);
  const tested = await runPolicyTests(folder, { ...inOrder(after), domain });
  return { ...tested, tenant: after.tenant, unseen: [...beside, ...after.unseen], unknown: after.unknown };
}

/**
 * The stack's namespace, or else the only namespace of a plan, before and after the plan.
 * @param plan a preview with values
 * @throws RequestError if the namespace cannot be read; ConfigurationError if no setting selects one
 */
export async function plannedNamespace(
  connection: Connection,
  plan: Plan,
): Promise<{ readonly before: Estate; readonly after: Estate }> {
  const here = onService(plan, connection.client.url);
  const { main, tenants } = await namespacesOf(connection, [here.plan]);
  if (main === undefined) {
    const which = tenants.length === 0 ? "none that exists" : tenants.join(", ");
    throw new ConfigurationError(`the plan is about ${which}`, {
      field: ["tenant"],
      remedy: "set GATEHOUSE_TENANT to the id of the namespace to look at",
    });
  }
  const before = await readEstate(connection, main);
  const { role: makerRole } = actorOf(await connection.client.identity(), before);
  const planned = plannedEstate(before, here.plan, { makerRole });
  const { policy, members, apiKeys } = planned;
  const unseen = [...before.unseen, ...here.unseen, ...planned.unseen.toSorted(byText)];
  const unknown = [...before.unknown, ...here.unknown, ...planned.unknown.toSorted(byText), ...planned.notes];
  return { before, after: { ...before, policy, members, apiKeys, unseen, unknown } };
}
