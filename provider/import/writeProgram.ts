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
  { kind: "DeviceTags", file: "devices", naming: "device" },
];

/** Writes a readable program that declares existing objects. */
export function writeProgram(objects: readonly Declarable[], options: ProgramOptions): Program {
  const { format } = options;
  const canBe = ({ definition, id }: Declarable) =>
    (!options.adopt || definition.inputs.adopt !== undefined) &&
    // A Terraform program omits an object whose id changes under Unicode normalization, since Terraform would read
    // another object.
    (format !== "terraform" || id === id.normalize());
  const kinds = KINDS.map((kind): KindOfProgram => {
    const own = objects.filter((object) => object.definition.name === kind.kind && canBe(object));
    return { ...kind, objects: named(own, kind) };
  }).filter((kind) => kind.objects.length > 0);
  const leftOut = objects.filter((object) => !canBe(object));
  const files = {
    typescript: () => typescriptFiles(kinds, options, leftOut),
    yaml: () => yamlFiles(kinds, options),
    terraform: () => terraformFiles(kinds, options),
  };
  return {
    files: files[format](),
    resources: kinds.flatMap(({ kind, objects }) =>
      objects.map(({ resource, id }) => ({ type: typeIn(options, kind), name: resource, id })),
    ),
    leftOut,
  };
}

function typeIn({ format, plugin }: ProgramOptions, kind: string): string {
  if (format === "terraform") return typeNameOf({ name: kind });
  return `${plugin || format === "yaml" ? OWN_PLUGIN : OWN_DYNAMIC}${kind}`;
}
