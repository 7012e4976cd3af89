import type { FieldPath } from "@gatehouse-access/sdk/errors";
import { DAY } from "@gatehouse-access/sdk/times";
import { holds, type Shown, type ShownStep, type Step, typeName } from "../engine/index.ts";
import { hcl, inline, jsonLine } from "../import/literal.ts";
import type { Format } from "../import/model.ts";
import { terraformAdoptions } from "../import/terraform.ts";
import { typescriptAdoptions } from "../import/typescript.ts";
import { literalText, yamlAdoptions } from "../import/yaml.ts";
import { check } from "../lifecycle/checkInputs.ts";
import { exceptionLine } from "../namespace/coverage.ts";
import { declarable, definitionOf, type LiveObject } from "../namespace/liveObjects.ts";
import { topOf } from "../plan/steps.ts";
import { terraformName } from "../terraform/types.ts";
import { changedFields } from "./changedFields.ts";
import type { Acceptance } from "./driftReport.ts";

/** The program or configuration that an {@link Acceptance} changes. */
export interface AcceptingProgram {
  readonly language: Format;
  readonly steps: readonly Step[];
  /** The `provider` argument of new Terraform resources. Undefined if the resources do not need this argument. */
  readonly provider?: string | undefined;
}

const EXCEPTED_DAYS = 30;

/**
 * Returns the changes to a program that accept the drift. Users who want to keep the live objects make these changes.
 */
export function acceptanceOf(
  drifted: readonly ShownStep[],
  unmanaged: readonly LiveObject[],
  now: Date,
  { language, steps, provider }: AcceptingProgram,
): Acceptance {
  // Terraform can import every object by its id. A Pulumi program can adopt an object only if the resource type has the
  // input `adopt`.
  const isAdoptable = ({ definition }: LiveObject) =>
    language === "terraform" || definition.inputs.adopt !== undefined;
  const { declarable: objects, undeclarable } = declarable(unmanaged.filter(isAdoptable));
  const left = [
    ...unmanaged.filter((object) => !isAdoptable(object)),
    ...undeclarable.map(({ object }) => object),
  ];
  const until = new Date(now.getTime() + EXCEPTED_DAYS * DAY).toISOString().slice(0, 10);
  const known = [...steps, ...drifted];
  const namesOf = (kind?: string) =>
    known.flatMap((step) => (kind === undefined || definitionOf(step)?.name === kind ? [step.name] : []));
  const declared = new Map(steps.map((step) => [step.urn, step]));
  const programs = {
    typescript: () => typescriptAdoptions(objects, namesOf),
    yaml: () => yamlAdoptions(objects, namesOf),
    terraform: () => terraformAdoptions(objects, namesOf(), provider),
  };
  return {
    language,
    program: programs[language](),
    changes: drifted.map((step) => changeLine(step, declared.get(step.urn), language)),
    exceptions: left.map((object) => exceptionLine(object, until, "why it is needed")),
  };
}

function changeLine(step: ShownStep, planned: Step | undefined, language: Format): string {
  const { op, type, name } = step;
  const isTerraform = language === "terraform";
  const title = isTerraform ? name : `${typeName(type)} ${JSON.stringify(name)}`;
  const definition = definitionOf(step);
  const fields = changedFields(step).filter(({ path }) => !definition || topOf(path) in definition.inputs);
  if (op === "delete") return `remove ${title}`;
  const revert = `revert the drift with ${isTerraform ? "terraform apply" : "drift --repair"}`;
  if (fields.length === 0) {
    const refresh = isTerraform ? "terraform apply -refresh-only" : "gatehouse refresh";
    return `${title}: no change needed; update the state with ${refresh}`;
  }
  if (fields.some(({ new: now }) => holds(now, "[secret]"))) {
    return `${title}: ${fields.map(({ path }) => path).join(", ")} cannot be shown; ${revert}`;
  }
  if (definition) {
    const inputs = fields.reduce<Values>(
      (values, { path, new: now }) => withValue(values, path.split("."), now),
      planned?.after?.inputs ?? {},
    );
    const changed = new Set(fields.map(({ path }) => topOf(path)));
    const refused = check(definition, inputs).failures.filter(({ field }) => changed.has(String(field?.[0])));
    // An empty list can be invalid because the resource no longer declares any object. In this case, the user can
    // remove the resource.
    const isEmptied = ({ field: [name = "", ...inside] = [] }: { readonly field?: FieldPath }) =>
      inside.length === 0 && Array.isArray(inputs[name]) && inputs[name].length === 0;
    if (refused.length > 0 && refused.every(isEmptied)) return `remove ${title}`;
    if (refused[0]) return `${title}: a program cannot declare this value (${refused[0].message}); ${revert}`;
  }
  const changes = fields.map(({ path, new: now }) => {
    const shown = isTerraform ? path.split(".").map(terraformName).join(".") : path;
    return now === undefined ? `omit ${shown}` : assigned[language](shown, now);
  });
  return `${title}: ${changes.join(", ")}`;
}

const assigned: Readonly<Record<Format, (field: string, value: unknown) => string>> = {
  typescript: (field, value) => `${field} = ${inline(value)}`,
  // JSON is valid YAML, so the value is written as JSON. Pulumi YAML reads `$$` as `$`.
  yaml: (field, value) => `${field}: ${jsonLine(literalText(value))}`,
  terraform: (field, value) => `${field} = ${hcl(value)}`,
};

type Values = Readonly<Record<string, Shown | undefined>>;

function withValue(values: Values, [name = "", ...inner]: readonly string[], now: Shown | undefined): Values {
  const outer = values[name];
  const isMap = typeof outer === "object" && outer !== null && !Array.isArray(outer);
  const value = inner.length === 0 ? now : (withValue(isMap ? outer : {}, inner, now) as Shown);
  const others = Object.entries(values).filter(([key]) => key !== name);
  return Object.fromEntries([...others, ...(value === undefined ? [] : [[name, value]])]);
}
