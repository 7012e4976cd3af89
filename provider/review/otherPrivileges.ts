import type { ResourceValues } from "../engine/index.ts";
import { losesObject, type PlannedStep } from "../plan/steps.ts";
import { byTexts } from "../words.ts";
import type { OtherPrivilege } from "./report/review.ts";

/**
 * Returns the changes of privileges beside logins and roles, such as the enrollment of devices.
 * @param steps the steps of the plan
 * @param base the steps of the base plan. Default: the plan is compared with the objects before its steps
 */
export function otherPrivileges(
  steps: readonly PlannedStep[],
  base?: readonly PlannedStep[],
): OtherPrivilege[] {
  const after = new Map(steps.flatMap((planned) => entriesOf(planned, planned.after)));
  const before = new Map(
    base
      ? base.flatMap((planned) => entriesOf(planned, planned.after))
      : steps.filter(isKept).flatMap((planned) => entriesOf(planned, planned.before)),
  );
  const changes = [...new Map([...before, ...after])].flatMap(
    ([urn, { kind, resource }]): OtherPrivilege[] => {
      const [old, now] = [before.get(urn)?.privilege, after.get(urn)?.privilege];
      if (now !== undefined)
        return old === now
          ? []
          : [{ change: old === undefined ? "gained" : "altered", kind, resource, privilege: now }];
      return old === undefined ? [] : [{ change: "lost", kind, resource, privilege: old }];
    },
  );
  return changes.sort(
    byTexts<OtherPrivilege>(
      ({ kind }) => kind,
      ({ resource }) => resource,
    ),
  );
}

/** False for a step that leaves its object on the service, which keeps the privilege. */
const isKept = ({ step, before }: PlannedStep): boolean => !(losesObject(step) && before?.retained === true);

type Given = Pick<OtherPrivilege, "kind" | "resource" | "privilege">;

function entriesOf(
  { definition, step }: PlannedStep,
  values: ResourceValues | undefined,
): (readonly [string, Given])[] {
  const privilege = values && definition.privilege?.(values.inputs);
  if (privilege === undefined) return [];
  return [[step.urn, { kind: definition.name, resource: step.name, privilege }]];
}
