import { OWN_DYNAMIC, OWN_PLUGIN } from "../../engine/index.ts";
import type { Declarable } from "../../inventory/liveObjects.ts";
import { construction } from "./literal.ts";
import type { KindOfFile, KindOfProgram, Program, ProgramOptions } from "./model.ts";
import { named } from "./names.ts";
import { withHelpers } from "./shared.ts";
import { typescriptFiles } from "./typescript.ts";
import { yamlFiles } from "./yaml.ts";

/** All kinds, in the order in which a reader wants them. */
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

/** The program that a person would write for objects that are there already. */
export function writeProgram(objects: readonly Declarable[], options: ProgramOptions): Program {
  const canBe = ({ definition }: Declarable) => !options.adopt || definition.inputs.adopt !== undefined;
  const kinds = KINDS.map((kind): KindOfProgram => {
    const own = objects.filter((object) => object.definition.name === kind.kind && canBe(object));
    return { ...kind, objects: named(own, kind.nameOf ?? (({ name }) => name)) };
  }).filter((kind) => kind.objects.length > 0);
  const plugin = options.plugin || options.format === "yaml";
  const prefix = plugin ? OWN_PLUGIN : OWN_DYNAMIC;
  const leftOut = objects.filter((object) => !canBe(object));
  return {
    files: options.format === "yaml" ? yamlFiles(kinds, options) : typescriptFiles(kinds, options, leftOut),
    resources: kinds.flatMap((kind) =>
      kind.objects.map(({ resource, id }) => ({ type: `${prefix}${kind.kind}`, name: resource, id })),
    ),
    leftOut,
  };
}

/** TypeScript that declares objects, each with `adopt: true`; without imports, for a program that is there already. */
export function adoptions(objects: readonly Declarable[]): string {
  const kinds = Map.groupBy(objects, ({ definition }) => definition.name);
  return [...kinds]
    .flatMap(([kind, some]) =>
      named(some, ({ name }) => name).map(({ resource, inputs }) =>
        construction(kind, resource, { ...withHelpers(inputs), adopt: true }),
      ),
    )
    .join("\n");
}
