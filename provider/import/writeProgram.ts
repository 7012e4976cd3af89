import { OWN_DYNAMIC, OWN_PLUGIN } from "../engine/index.ts";
import { isNamespace } from "../model/definition.ts";
import type { Declarable } from "../namespace/liveObjects.ts";
import { accessPolicy } from "../resources/accessPolicy.ts";
import { kindsWith } from "../resources/index.ts";
import { serviceAccount } from "../resources/serviceAccount.ts";
import { typeNameOf } from "../terraform/types.ts";
import { type KindOfProgram, named, type Program, type ProgramOptions } from "./model.ts";
import { terraformFiles } from "./terraform.ts";
import { typescriptFiles } from "./typescript.ts";
import { yamlFiles } from "./yaml.ts";

/** Writes a readable program that declares existing objects. */
export function writeProgram(objects: readonly Declarable[], options: ProgramOptions): Program {
  const { format, newObjects } = options;
  const canBe = ({ definition, id }: Declarable) =>
    (!options.adopt || definition.inputs.adopt !== undefined) &&
    // Terraform normalizes Unicode. If normalization changes an object's id, Terraform would read a different object,
    // so a Terraform program omits the object.
    (format !== "terraform" || id === id.normalize());
  const kinds = kindsWith("imported")
    .map(({ definition, imported }): KindOfProgram => {
      const { nameOf, ...kind } = imported;
      const own = objects.filter((object) => object.definition === definition && canBe(object));
      const naming = nameOf && { nameOf: ({ inputs }: Declarable) => nameOf(inputs) };
      const of = { ...kind, ...naming, kind: definition.name };
      return { ...of, objects: named(newObjects ? own.map(inIdentityMode) : own, of) };
    })
    .filter((kind) => kind.objects.length > 0);
  const leftOut = objects.filter((object) => !canBe(object));
  // The accounts come first, since a new account can be the subject of a policy.
  const added = [serviceAccount.definition, accessPolicy.definition]
    .map(({ name: kind }): KindOfProgram => {
      const own = newObjects?.filter(({ definition }) => definition.name === kind) ?? [];
      const taken = kinds.find((other) => other.kind === kind)?.objects.map(({ resource }) => resource);
      return { kind, file: "identityMode", objects: named(own, { taken: taken ?? [] }) };
    })
    .filter(({ objects: own }) => own.length > 0);
  const files = {
    typescript: () => typescriptFiles(kinds, added, options, leftOut),
    yaml: () => yamlFiles(kinds, added, options),
    terraform: () => terraformFiles(kinds, added, options),
  };
  return {
    files: files[format](),
    resources: kinds.flatMap(({ kind, objects }) =>
      objects.map(({ resource, id }) => ({ type: typeIn(options, kind), name: resource, id })),
    ),
    leftOut,
  };
}

/** Returns a namespace with a declaration that changes it to identity mode. Returns other objects unchanged. */
function inIdentityMode(object: Declarable): Declarable {
  const { definition, inputs } = object;
  if (!isNamespace(definition)) return object;
  const settings = { ...(inputs.settings as object | undefined), sshAccessMode: "identity" };
  return { ...object, inputs: { ...inputs, settings } };
}

function typeIn({ format, plugin }: ProgramOptions, kind: string): string {
  if (format === "terraform") return typeNameOf({ name: kind });
  return `${plugin || format === "yaml" ? OWN_PLUGIN : OWN_DYNAMIC}${kind}`;
}
