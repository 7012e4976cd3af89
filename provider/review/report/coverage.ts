import type { Estate } from "../estate.ts";
import { byTexts } from "../words/order.ts";
import type { Coverage, EstateObject } from "./review.ts";

const KINDS: readonly EstateObject["kind"][] = ["PublicKey", "FirewallRule", "Member", "ApiKey"];

const byKind = byTexts<EstateObject>(
  ({ kind }) => String(KINDS.indexOf(kind)),
  ({ name }) => name,
  ({ id }) => id,
);

/** The objects of a namespace that a program can declare. The owner is not one: nobody declares that. */
export function objectsOf({ policy, members = [], apiKeys = [] }: Estate): EstateObject[] {
  return [
    ...policy.keys.map(({ fingerprint, name }) => ({ kind: "PublicKey" as const, id: fingerprint, name })),
    ...policy.rules.map((rule) => ({
      kind: "FirewallRule" as const,
      id: rule.id,
      name: `${rule.id}: ${rule.action} at priority ${rule.priority}`,
    })),
    ...members
      .filter(({ role }) => role !== "owner")
      .map(({ id, email }) => ({ kind: "Member" as const, id, name: email })),
    ...apiKeys.map(({ name }) => ({ kind: "ApiKey" as const, id: name, name })),
  ];
}

/**
 * How much of a namespace a program declares.
 * @param isManaged true for an object that a resource of the program stands for
 */
export function coverageOf(estate: Estate, isManaged: (object: EstateObject) => boolean): Coverage {
  const objects = objectsOf(estate);
  const unmanaged = objects.filter((object) => !isManaged(object)).sort(byKind);
  const total = objects.length;
  const managed = total - unmanaged.length;
  return { managed, total, percent: total === 0 ? 100 : Math.floor((100 * managed) / total), unmanaged };
}
