import { ConfigurationError } from "@gatehouse-access/sdk";
import type { Plan } from "../engine/index.ts";
import { countingInvited, type Estate, evaluatedFor, inOrder, readEstate } from "../estate/namespaceState.ts";
import { withAdoptedNamespaces } from "../plan/adoptedNamespaces.ts";
import { plannedEstate } from "../plan/planned/plannedEstate.ts";
import { namespacesOf, onService } from "../plan/steps.ts";
import type { PolicyTestReport } from "../policyTests/results.ts";
import { runPolicyTests } from "../policyTests/runPolicyTests.ts";
import type { Connection } from "../service/connection.ts";
import { byText } from "../words.ts";
import { actorOf } from "./guards/planProblems.ts";

/** Output of `gatehouse test --json`: the results of the policy tests on the stack's namespace. */
export interface TestedNamespace extends PolicyTestReport {
  /** Id of the namespace. */
  readonly tenant: string;
  /** Parts that could not be evaluated, as sentences. The tests do not cover these parts. */
  readonly notEvaluated: readonly string[];
  /** Other facts that could not be determined, as sentences. The results of the tests may depend on these facts. */
  readonly unknown: readonly string[];
}

/**
 * Runs the policy tests of a project directory on the live namespace.
 * @throws RequestError if the namespace cannot be read
 */
export async function testLive(connection: Connection, folder: string): Promise<TestedNamespace> {
  const estate = inOrder(await readEstate(connection));
  const evaluated = evaluatedFor(estate, [estate.policy]);
  const { tenant, notEvaluated, unknown } = estate;
  return { ...(await runPolicyTests(folder, { ...estate, evaluated })), tenant, notEvaluated, unknown };
}

/**
 * Runs the policy tests of a project directory on the namespace after a plan.
 * @param plan a preview with values
 * @param notEvaluated parts of the plan that could not be evaluated, as sentences
 * @throws RequestError if the namespace cannot be read
 */
export async function testPlan(
  connection: Connection,
  folder: string,
  plan: Plan,
  notEvaluated: readonly string[] = [],
): Promise<TestedNamespace> {
  const { before, after } = await plannedNamespace(connection, plan);
  const evaluated = evaluatedFor(before, [before.policy, after.policy]);
  const tested = await runPolicyTests(folder, { ...inOrder(after), evaluated });
  return {
    ...tested,
    tenant: after.tenant,
    notEvaluated: [...notEvaluated, ...after.notEvaluated],
    unknown: after.unknown,
  };
}

/**
 * Returns the namespace before and after a plan: the stack's namespace, or otherwise the only namespace of the plan.
 * @param plan a preview with values
 * @throws RequestError if the namespace cannot be read; ConfigurationError if no setting selects the namespace
 */
export async function plannedNamespace(
  connection: Connection,
  plan: Plan,
): Promise<{ readonly before: Estate; readonly after: Estate }> {
  const local = onService(plan, connection.client.url);
  const adopting = await withAdoptedNamespaces(connection, local.plan);
  const { main, tenants } = await namespacesOf(connection, [adopting]);
  if (main === undefined) {
    const which =
      tenants.length === 0 ? "no existing namespace" : `several namespaces: ${tenants.join(", ")}`;
    throw new ConfigurationError(`the plan covers ${which}`, {
      field: ["tenant"],
      remedy: "set GATEHOUSE_TENANT to the id of the namespace to evaluate",
    });
  }
  const before = await readEstate(connection, main);
  const { role: creatorRole } = actorOf(await connection.client.forTenant(main).identity(), before);
  const planned = plannedEstate(before, adopting, { creatorRole });
  const { accessUnknown, members, apiKeys, trustedWorkloads, settings } = planned;
  const policy = countingInvited(planned.policy);
  const notEvaluated = [
    ...before.notEvaluated,
    ...local.notEvaluated,
    ...planned.notEvaluated.toSorted(byText),
  ];
  const unknown = [
    ...before.unknown,
    ...local.unknown,
    ...planned.unknown.toSorted(byText),
    ...planned.notes,
  ];
  const objects = { policy, members, apiKeys, trustedWorkloads, settings };
  return { before, after: { ...before, ...objects, accessUnknown, notEvaluated, unknown } };
}
