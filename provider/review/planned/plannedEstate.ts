import type { AccessPolicy } from "@gatehouse-access/sdk/policy";
import type { Plan } from "../../engine/index.ts";
import type { Estate } from "../estate.ts";
import { carryOut } from "./carryOut.ts";
import { Draft, type PlannedApiKey, type PlannedMember } from "./draft.ts";
import { type ManagedObject, managedBy } from "./managed.ts";
import { losesObject, type PlannedStep, stepsOf } from "./steps.ts";
import { type Twins, twinsOf } from "./twins.ts";

export type { PlannedApiKey, PlannedMember } from "./draft.ts";
export type { ManagedObject } from "./managed.ts";
export type { Twins } from "./twins.ts";

/** What a namespace will be once a plan is carried out. */
export interface PlannedEstate {
  readonly policy: AccessPolicy;
  /** All of them; undefined where they could not be read. */
  readonly members: readonly PlannedMember[] | undefined;
  /** All of them; undefined where they could not be read. */
  readonly apiKeys: readonly PlannedApiKey[] | undefined;
  /** Live objects that resources of the stack manage, or take over. */
  readonly managed: readonly ManagedObject[];
  readonly twins: readonly Twins[];
  /** What nobody can tell before the change is made, as sentences that name the resource. */
  readonly unknown: readonly string[];
  /** What is no part of this namespace, as sentences: namespaces that are being made, and what is for them. */
  readonly notes: readonly string[];
  /** The steps of the plan about this namespace. */
  readonly steps: readonly PlannedStep[];
  /** Those about namespaces that are being made: the same for whichever namespace is looked at. */
  readonly begun: readonly PlannedStep[];
}

/** How a plan is read. */
export interface PlannedEstateOptions {
  /** The namespace of resources that name none. Default: the estate's. */
  readonly home?: string;
  /** When it is carried out, which API keys that come expire by. Default: now. */
  readonly now?: Date;
}

/**
 * What a namespace will be once a plan is carried out.
 *
 * Of unchanged resources the objects stay as they really are, whatever the state says of them. Where nobody can tell
 * what a resource will be (a deciding input that is not known yet or is secret, a device that is not there), its object
 * stays as it is; a new one is left out. Either is said in `unknown`.
 * @param plan a preview with values
 * @throws Error when the plan has no values
 */
export function plannedEstate(
  estate: Estate,
  plan: Plan,
  { home = estate.tenant, now = new Date() }: PlannedEstateOptions = {},
): PlannedEstate {
  const draft = new Draft(estate, now);
  const { steps, begun, unknown } = stepsOf(plan, estate.tenant, home);
  const done = carryOut(draft, steps);
  return {
    policy: draft.policy(),
    members: draft.members && [...draft.members.values()],
    apiKeys: draft.apiKeys && [...draft.apiKeys.values()],
    managed: managedBy(draft, steps, done.declared),
    twins: twinsOf(draft, done.declared),
    unknown: [...unknown, ...done.unknown, ...steps.filter(isLeft).map(leftNote)],
    notes: begun.map(begunNote),
    steps,
    begun,
  };
}

const begunNote = ({ title, definition }: PlannedStep) =>
  definition.name === "Namespace"
    ? `${title} makes a namespace: nothing of it is there yet`
    : `${title} is for a namespace that is being made, and is no part of this one`;

const isLeft = ({ step, before }: PlannedStep) => losesObject(step) && before?.retained === true;

const leftNote = ({ title }: PlannedStep) =>
  `${title} leaves its object where it is, managed by nobody (retainOnDelete)`;
