import type { AccessPolicy, PolicySubject } from "@gatehouse-access/sdk/policy";
import { definitionsByName } from "../resources/index.ts";
import { idWithin, sameInputs } from "../resources/values.ts";
import type { Values } from "../values.ts";
import type { Draft } from "./draft.ts";
import { type Kind, listedBy, type PlannedChange } from "./kind.ts";
import type { LiveObject } from "./object.ts";
import { hiddenValues, invalidInput, isHidden, outputOf, type PlannedStep } from "./plannedStep.ts";

const definition = definitionsByName.AccessPolicy;

/** The maximum period with which servers of version 0.27 do not fail when a login needs a re-authentication. */
const PERIOD_MAX = 2_147_483_647;

interface Subject {
  readonly user?: string;
  readonly role?: string;
  readonly allMembers?: true;
}

type PolicyState = Omit<AccessPolicy, "id" | "subject" | "reauthPeriod"> & {
  readonly policyId: string;
  readonly subject: Subject;
  /** In seconds; 0 if each login needs a re-authentication. */
  readonly reauthPeriod: number;
};

export const accessPolicy: Kind = {
  definition,
  keyOf: idWithin,
  reading: listedBy(definition, {
    what: "the access policies",
    missed: "unmanaged access policies cannot be detected",
  }),
  parts: undefined,
  watched: {
    keptBy: (_object, { isClosed }) =>
      isClosed ? "the namespace may deny every login without this policy; declare a policy first" : undefined,
  },
  operations: {
    create: ["createAccessPolicy"],
    update: ["updateAccessPolicy"],
    delete: ["deleteAccessPolicy"],
  },
  plan: {
    stage: "policies",
    keyOf: (before) => outputOf(before, "policyId"),
    newKey: adopted,
    values: (draft, change) => ({
      policyId: change.key,
      subject: subjectIn(draft, change),
    }),
  },
  decides: {
    parts: (objects) => ({ policies: Array.from(objects).flatMap((object) => policyIn(object) ?? []) }),
    obstacle: (object) =>
      policyIn(object)
        ? undefined
        : `the access policy ${object.name} has a subject, an action or a re-authentication period that this version cannot evaluate`,
    decision: "policy",
  },
  role: undefined,
  changes: undefined,
  linted: undefined,
  imported: { file: "policies", naming: "name" },
};

/**
 * Returns a policy as the evaluation needs it. Undefined if the policy has a subject or an action of later versions, or a
 * period with which the server fails.
 */
function policyIn({ state }: LiveObject): AccessPolicy | undefined {
  const {
    policyId: id,
    name,
    filter,
    logins,
    sourceIps,
    action,
    requireReauth,
    ...one
  } = state as unknown as PolicyState;
  const subject = policySubject(one.subject);
  if (!subject || (action !== "allow" && action !== "deny")) return undefined;
  if (requireReauth && one.reauthPeriod > PERIOD_MAX) return undefined;
  const reauthPeriod = one.reauthPeriod === 0 ? null : one.reauthPeriod;
  return { id, name, subject, filter, logins, sourceIps, action, requireReauth, reauthPeriod };
}

function policySubject({ user, role, allMembers }: Subject): PolicySubject | undefined {
  if (user !== undefined) return { type: "user", value: user };
  if (role !== undefined) return { type: "role", value: role };
  return allMembers ? { type: "all-members", value: "" } : undefined;
}

/** Returns the key of the equal live policy that a new resource adopts. No live policy has a subject of this plan. */
function adopted({ live }: Draft, { after }: PlannedStep, inputs: Values): string | undefined {
  if (!after?.inputs.adopt || isHidden(after.inputs.subject)) return undefined;
  const policies = [...(live.of(definition) ?? [])];
  return policies.find(([, { state }]) => sameInputs(definition.inputs, state, inputs))?.[0];
}

/**
 * Returns the subject of a policy. A preview does not know the id of a principal that the plan creates, but it knows the
 * resource from which the program takes the id.
 * @throws UnpredictableError if the subject is not known or not valid
 */
function subjectIn({ newPrincipals }: Draft, { after, inputs }: PlannedChange): Subject {
  const { subject } = after.inputs;
  if (!isHidden(subject)) {
    const known = definition.inputs.subject?.schema.safeParse(subject);
    if (!known?.success) throw invalidInput("subject");
    return inputs.subject as Subject;
  }
  // With further references, the id can belong to another principal.
  const [urn = "", ...others] = after.references?.subject ?? [];
  const isUser = typeof subject === "object" && subject !== null && Object.keys(subject).join() === "user";
  const user = isUser && others.length === 0 ? newPrincipals.get(urn) : undefined;
  if (user === undefined) throw hiddenValues(["subject"]);
  return { user };
}
