import type { Plan, Shown, Step, StepOp } from "../../../provider/engine/index.ts";

type Values = Record<string, Shown>;

/** The id of the plan's namespace, and the id of another namespace. */
export const TENANT = "11111111-2222-4333-8444-555555555555";
export const OTHER = "99999999-2222-4333-8444-555555555555";
/** The output that contains the id of an object, by the kind of the object. */
const ID_OUTPUT = {
  ApiKey: "name",
  Device: "uid",
  FirewallRule: "ruleId",
  InstallKey: "installKeyId",
  Member: "userId",
  PublicKey: "fingerprint",
  Tag: "name",
  TrustedWorkload: "workloadId",
} as const;

/**
 * Returns the sides of a step whose resource manages a live object.
 * @param outputs further outputs in the state of the resource
 */
export const managing = (
  kind: keyof typeof ID_OUTPUT,
  id: string,
  outputs: Values = {},
  inputs: Values = {},
) => ({
  before: { inputs, outputs: { [ID_OUTPUT[kind]]: id, ...outputs } },
  id: `${TENANT}/${id}`,
});

interface Sides {
  readonly before?: { inputs?: Values; outputs: Values };
  readonly after?: Values;
  readonly id?: string;
}

/** Returns the URN of a dynamic resource. */
export const urnOf = (kind: string, name: string) =>
  `urn:pulumi:test::project::pulumi-nodejs:dynamic/gatehouse:${kind}::${name}`;

/** Returns a step of a plan, with the values of its resource. */
export function step(op: StepOp, kind: string, name: string, { before, after, id }: Sides): Step {
  const was = before && { inputs: before.inputs ?? {}, outputs: { tenant: TENANT, ...before.outputs } };
  return {
    op,
    urn: urnOf(kind, name),
    type: `pulumi-nodejs:dynamic/gatehouse:${kind}`,
    name,
    fields: [],
    ...(id !== undefined && { id }),
    ...(was && { before: was }),
    // In a preview, only an unchanged or imported resource has outputs. For other resources, this function uses the
    // inputs as outputs.
    ...(after && {
      after: {
        inputs: after,
        outputs: op === "same" || op === "import" ? (was?.outputs ?? { tenant: TENANT, ...after }) : after,
      },
    }),
  };
}

/** Returns the step that creates the object of a resource with these inputs. */
export const creation = (kind: string, name: string, after: Values): Step =>
  step("create", kind, name, { after });

/** Returns a plan with these steps. */
export const planOf = (...steps: Step[]) => ({ steps }) as unknown as Plan;
/** Converts a step of a dynamic resource to the same step of a plugin resource. */
export const byPlugin = (one: Step): Step => {
  const type = one.type.replace("pulumi-nodejs:dynamic/gatehouse:", "gatehouse:index:");
  return { ...one, type, urn: one.urn.replace(one.type, type) };
};
