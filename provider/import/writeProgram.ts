import { OWN_DYNAMIC, OWN_PLUGIN } from "../engine/index.ts";
import type { Declarable } from "../estate/liveObjects.ts";
import { typeNameOf } from "../terraform/types.ts";
import { type KindOfFile, type KindOfProgram, named, type Program, type ProgramOptions } from "./model.ts";
import { terraformFiles } from "./terraform.ts";
import { typescriptFiles } from "./typescript.ts";
import { yamlFiles } from "./yaml.ts";

const KINDS: readonly KindOfFile[] = [
  { kind: "Namespace", file: "namespace", options: { protect: true } },
  { kind: "Member", file: "members", naming: "email" },
  { kind: "PublicKey", file: "keys", naming: "name" },
  {
    kind: "FirewallRule",
    file: "rules",
    nameOf: ({ inputs: { action, priority } }) => `${action}-${priority}`,
  },
  { kind: "ApiKey", file: "apiKeys", naming: "name" },
  { kind: "TrustedWorkload", file: "workloads", naming: "name" },
  { kind: "DeviceTags", file: "devices", naming: "device" },
  { kind: "AccessPolicy", file: "policies", naming: "name" },
  { kind: "ServiceAccount", file: "serviceAccounts", naming: "name" },
  { kind: "InstallKey", file: "installKeys", naming: "name" },
];

/** Writes a readable program that declares existing objects. */
export function writeProgram(objects: readonly Declarable[], options: ProgramOptions): Program {
  const { format, newObjects } = options;
  const canBe = ({ definition, id }: Declarable) =>
    (!options.adopt || definition.inputs.adopt !== undefined) &&
    // Terraform normalizes Unicode. If an object's id changes under this normalization, Terraform would read a
    // different object, so a Terraform program omits the object.
    (format !== "terraform" || id === id.normalize());
  const kinds = KINDS.map((kind): KindOfProgram => {
    const own = objects.filter((object) => object.definition.name === kind.kind && canBe(object));
    return { ...kind, objects: named(newObjects ? own.map(inIdentityMode) : own, kind) };
  }).filter((kind) => kind.objects.length > 0);
  const leftOut = objects.filter((object) => !canBe(object));
  const added = ["ServiceAccount", "AccessPolicy"]
    .map((kind): KindOfProgram => {
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

/** Returns a namespace whose declaration changes it to identity mode, and other objects unchanged. */
function inIdentityMode(object: Declarable): Declarable {
  const { definition, inputs } = object;
  if (definition.name !== "Namespace") return object;
  const settings = { ...(inputs.settings as object | undefined), sshAccessMode: "identity" };
  return { ...object, inputs: { ...inputs, settings } };
}

function typeIn({ format, plugin }: ProgramOptions, kind: string): string {
  if (format === "terraform") return typeNameOf({ name: kind });
  return `${plugin || format === "yaml" ? OWN_PLUGIN : OWN_DYNAMIC}${kind}`;
}
