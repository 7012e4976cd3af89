import type { Draft } from "./draft.ts";
import { kindOf } from "./kinds.ts";
import { apiKeyNameToday } from "./membersAndApiKeys.ts";
import type { PlannedStep } from "./steps.ts";
import type { Declared } from "./twins.ts";

/** An object of the service that a resource of the stack manages. */
export interface ManagedObject {
  /** Name of the resource's class. */
  readonly kind: string;
  /**
   * Fingerprint of a public key, id of a rule, user id of a member, name of an API key today, uid of a device (also for
   * its tags), `uid/tag` of an attachment, tenant of a namespace.
   */
  readonly id: string;
  readonly urn: string;
}

/** Live objects that resources of the stack have today, or take over. */
export function managedBy(
  draft: Draft,
  steps: readonly PlannedStep[],
  declared: readonly Declared[],
): ManagedObject[] {
  const found = new Map<string, ManagedObject>();
  const add = ({ step, definition, before }: PlannedStep, whole: string | undefined) => {
    if (whole === undefined) return;
    const isApiKey = definition.name === "ApiKey" && before !== undefined;
    const id = isApiKey ? apiKeyNameToday(draft, before) : whole.slice(whole.indexOf("/") + 1);
    const object = { kind: definition.name, id, urn: step.urn };
    if (kindOf(definition).isLive(draft, id)) found.set(JSON.stringify(object), object);
  };
  for (const planned of steps) if (planned.before) add(planned, planned.step.id);
  for (const { planned, id } of declared) add(planned, id);
  return [...found.values()];
}
