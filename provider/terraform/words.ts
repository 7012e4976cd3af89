import type { Phrases, Words } from "../resourceError.ts";
import type { ResourceDefinition } from "../resources/definition.ts";
import { definitions } from "../resources/index.ts";
import { terraformName, typeNameOf } from "./types.ts";

const PHRASES: Phrases = {
  elsewhere: "made by hand, elsewhere, or by an apply that was interrupted",
  inTurn: "by an apply of its own",
  takeOver: "to take it over, or import it by this id",
  refresh: "run terraform plan again",
  ofThisProgram: "resource of this configuration",
  ofTheProgram: "resource of the configuration",
  dependsOn: "depends_on",
};

/** Terms of messages as Terraform has them: `forceDestroy: true` as `force_destroy = true`. */
export const terraformTerms: Words = (term) => {
  if ("phrase" in term) return PHRASES[term.phrase];
  const name = terraformName(term.field);
  return term.value === undefined ? name : `${name} = ${JSON.stringify(term.value)}`;
};

/** What descriptions of definitions say in the words of Pulumi, and how it is said of Terraform. */
const OTHER_WORDS: readonly (readonly [pulumi: string, terraform: string])[] = [
  ["the next up", "the next apply"],
  ["first up", "first apply"],
  ["with the up", "with the apply"],
  ["the stack's namespace", "that of the provider"],
  ["the program goes on", "the apply goes on"],
];

const TYPES = new Map(definitions.map((definition) => [definition.name, typeNameOf(definition)]));

/** A description of a definition in the names and the words of Terraform. */
export function describedInTerraform({ inputs, outputs }: ResourceDefinition, text: string): string {
  const names = [...Object.keys(inputs), ...Object.keys(outputs)].join("|");
  const named = text.replaceAll(new RegExp(`\\b(${names})\\b`, "g"), (name) =>
    /[A-Z]/.test(name) ? terraformName(name) : name,
  );
  const typed = named.replaceAll(/\b(?:[A-Z][a-z]+){2,}\b/g, (word) => TYPES.get(word) ?? word);
  return OTHER_WORDS.reduce((said, [pulumi, terraform]) => said.replaceAll(pulumi, terraform), typed);
}
