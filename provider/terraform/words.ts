import type { ResourceDefinition } from "../resources/definition.ts";
import { definitions } from "../resources/index.ts";
import { terraformName, typeNameOf } from "./types.ts";

/** What the steps of resources say in the words of Pulumi, and how it is said of Terraform. */
const OTHER_WORDS: readonly (readonly [pulumi: string, terraform: string])[] = [
  ["made by hand or by another program", "made by hand, elsewhere, or by an apply that was interrupted"],
  ["by an up of its own", "by an apply of its own"],
  ["to take it over", "to take it over, or import it by this id"],
  ["run with --refresh", "run terraform plan again"],
  ["the next up", "the next apply"],
  ["first up", "first apply"],
  ["with the up", "with the apply"],
  ["the stack's namespace", "that of the provider"],
  ["the program goes on", "the apply goes on"],
  ["dependsOn", "depends_on"],
  ["resource of the program", "resource of the configuration"],
  ["resource of this program", "resource of this configuration"],
];

/** Resources whose names are no words of English. */
const TYPES = new Map(definitions.map((definition) => [definition.name, typeNameOf(definition)]));

/** A text about a resource in the names and the notation of Terraform: `forceDestroy: true` as `force_destroy = true`. */
export function terraformWords({ inputs, outputs }: ResourceDefinition, text: string): string {
  const names = [...Object.keys(inputs), ...Object.keys(outputs)].join("|");
  const named = text
    .replaceAll(
      new RegExp(`\\b(${names}): (?=true|false|"|-?\\d)`, "g"),
      (_all, name: string) => `${terraformName(name)} = `,
    )
    .replaceAll(new RegExp(`\\b(${names})\\b`, "g"), (name) =>
      /[A-Z]/.test(name) ? terraformName(name) : name,
    );
  const typed = named.replaceAll(/\b(?:[A-Z][a-z]+){2,}\b/g, (word) => TYPES.get(word) ?? word);
  return OTHER_WORDS.reduce((said, [pulumi, terraform]) => said.replaceAll(pulumi, terraform), typed);
}
