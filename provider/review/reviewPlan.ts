import { NotFoundError, PermissionError } from "@gatehouse-access/sdk";
import { tenantId } from "@gatehouse-access/sdk/contract";
import { type Plan, withoutValues } from "../engine/index.ts";
import type { Connection } from "../resources/connection.ts";
import { actorOf } from "./actor.ts";
import { readEstate } from "./estate.ts";
import { protectedGroup } from "./lockouts.ts";
import type { Review } from "./review.ts";
import { type ReviewedNamespace, reviewNamespace } from "./reviewNamespace.ts";

/** How a plan is reviewed. */
export interface ReviewOptions {
  /** The program's folder. */
  readonly folder: string;
  /** Login names and addresses to evaluate access for, beside those that are known. */
  readonly logins: readonly string[];
  readonly addresses: readonly string[];
  /** Groups of devices that must stay reachable; see `protectedGroup`. */
  readonly protect: readonly string[];
  readonly soonDays?: number;
}

/** A review, and what the access map draws. */
export interface ReviewedPlan {
  readonly review: Review;
  readonly namespaces: readonly ReviewedNamespace[];
}

/**
 * What a plan means for who can reach what: for the credential's namespace, and for every other one that the plan is
 * about.
 * @param plan a preview with values
 * @throws RequestError when the credential's namespace cannot be read
 */
export async function reviewPlan(
  connection: Connection,
  plan: Plan,
  options: ReviewOptions,
): Promise<ReviewedPlan> {
  const home = await connection.tenant(undefined);
  const identity = await connection.client.identity();
  const protect = options.protect.map(protectedGroup);
  const unknown: string[] = [];
  const namespaces: ReviewedNamespace[] = [];
  for (const tenant of new Set([home.tenant, ...tenantsOf(plan)])) {
    const estate = await readEstate(await connection.tenant(tenant)).catch((error: unknown) => {
      const isOther = tenant !== home.tenant;
      if (!isOther || !(error instanceof PermissionError || error instanceof NotFoundError)) throw error;
      unknown.push(`the namespace ${tenant} could not be read: ${error.message}`);
      return undefined;
    });
    if (!estate) continue;
    const { logins, addresses, folder, soonDays } = options;
    namespaces.push(
      await reviewNamespace(estate, plan, {
        ...{ logins, addresses, protect, home: home.tenant },
        // As `gatehouse test`: they are about the credential's own namespace.
        folder: tenant === home.tenant ? folder : undefined,
        ...(soonDays !== undefined && { soonDays }),
        actor: actorOf(identity, estate),
        runningUser: identity.userId,
      }),
    );
  }
  for (const { label, has } of protect) {
    const isThere = namespaces.some(({ before, after }) =>
      [...before.policy.devices, ...after.policy.devices].some(has),
    );
    if (!isThere) unknown.push(`--protect ${label} protects nothing: no device has that tag or name`);
  }
  return { review: reviewOf(connection, plan, namespaces, unknown), namespaces };
}

function reviewOf(
  { client }: Connection,
  plan: Plan,
  namespaces: readonly ReviewedNamespace[],
  unknown: readonly string[],
): Review {
  const { project, stack, engine, summary, steps } = withoutValues(plan);
  const changes = steps.filter(({ op }) => op !== "same");
  return {
    ...{ version: 1, project, stack, engine, service: client.url, summary, changes, unknown },
    namespaces: namespaces.map(({ review }) => review),
    twins: namespaces.flatMap(({ planned }) => planned.twins),
  };
}

/** Namespaces that resources of the plan are in, as far as their ids are known. */
function tenantsOf({ steps }: Plan): string[] {
  return steps
    .flatMap(({ before, after }) => [before, after])
    .flatMap((values) => [values?.outputs.tenant, values?.inputs.tenant])
    .flatMap((value) => tenantId.safeParse(value).data ?? []);
}
