import type { Phrases, Words } from "../resourceError.ts";
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

const TYPES = new Map(definitions.map((definition) => [definition.name, typeNameOf(definition)]));

/** A description of a definition with Terraform's types in place of the names of resources, which stand in backticks. */
export const describedInTerraform = (text: string): string =>
  text.replaceAll(/`([A-Z]\w+)`/g, (code, name: string) =>
    TYPES.has(name) ? `\`${TYPES.get(name)}\`` : code,
  );
