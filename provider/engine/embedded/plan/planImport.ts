import type { ResourceState } from "../../state/resourceState.ts";
import type { Entry } from "../../state/snapshot.ts";
import { containsUnknown, markSecrets, PROVIDER_KEY, type Props } from "../../value.ts";
import type { Goal } from "../program/goal.ts";
import type { DynamicProvider } from "../program/providerProcess.ts";
import { changedFields } from "./changedFields.ts";
import type { ResourcePlan } from "./planResource.ts";
import { checkInputs, diffResource, ignoreChanges } from "./providerAnswers.ts";

/** True where the program asks for an import and the state does not hold that object yet. */
export function wantsImport(goal: Goal, old: Entry | undefined): boolean {
  if (!goal.custom || goal.importId === "") return false;
  return !old || (old.state.importID ?? old.state.id) !== goal.importId;
}

/**
 * Reads the object that is to be imported. As for every provider nothing is known of it but its id; a dynamic
 * provider's code goes along, without which nobody could read it. Throws where there is no such object, or where the
 * program wants it to be different from what it is.
 */
export async function planImport(
  provider: DynamicProvider,
  goal: Goal,
  old: Entry | undefined,
): Promise<ResourcePlan> {
  const id = goal.importId;
  const code: Props = { [PROVIDER_KEY]: goal.props[PROVIDER_KEY] ?? null };
  const found = await provider.read(goal, id, { inputs: goal.props, outputs: code });
  if (!found) throw new Error(`it cannot be imported: there is no object with the id "${id}"`);
  if (!found.inputs) {
    throw new Error(
      "it cannot be imported: its provider has no read, or one that gives no inputs; " +
        "let read return { id, props, inputs }",
    );
  }
  const existing: ResourceState = {
    urn: goal.urn,
    custom: true,
    type: goal.type,
    id: found.id,
    inputs: markSecrets(found.inputs, goal.props),
    outputs: markSecrets(found.outputs, goal.props),
  };
  const read = existing.inputs ?? {};
  const wanted = ignoreChanges(goal.props, read, goal.ignoreChanges);
  const inputs = await checkInputs(provider, goal, read, wanted);
  await requireAgreement(provider, goal, existing, inputs);
  return { op: "import", inputs, old, found: { id: found.id, outputs: existing.outputs ?? {} } };
}

/** An import changes nothing: throws where the object would have to be updated or replaced. */
async function requireAgreement(
  provider: DynamicProvider,
  goal: Goal,
  existing: ResourceState,
  inputs: Props,
): Promise<void> {
  const diff = await diffResource(provider, goal, existing, inputs);
  if (diff.changes !== "some") return;
  const fields = changedFields(existing, inputs).filter(({ path }) => {
    const [key = ""] = path.split(".");
    // A preview does not know every input yet; the run itself compares them.
    return key !== PROVIDER_KEY && !containsUnknown(inputs[key]);
  });
  if (fields.length === 0 && containsUnknown(inputs)) return;
  const lines = fields.map(
    ({ path, old, new: now }) => `${path} is ${JSON.stringify(old)}, the program says ${JSON.stringify(now)}`,
  );
  throw new Error(
    `it cannot be imported, because the object "${goal.importId}" differs from the program: ` +
      `${lines.length > 0 ? lines.join("; ") : "the provider does not say where"}. ` +
      "Set these inputs to what is there (or list them in ignoreChanges), import, then change them.",
  );
}
