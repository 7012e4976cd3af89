import { terraformAdoptions } from "../adoption/program/terraform.ts";
import { adoptions } from "../adoption/program/writeProgram.ts";
import { type Runner, type Shown, type ShownStep, typeName } from "../engine/index.ts";
import { exceptionLine } from "../inventory/exceptions.ts";
import { declarable, type LiveObject } from "../inventory/liveObjects.ts";
import { terraformName } from "../terraform/types.ts";
import { changedFields } from "./changedFields.ts";

/** What makes a program agree with what was found, in the languages of a program and of access.ignore. */
export interface Acceptance {
  /** What declares what is in no program, and takes it over: TypeScript, or blocks of Terraform. */
  readonly program: string;
  /** What to change in the program, a line for each resource. */
  readonly changes: readonly string[];
  /** Lines of access.ignore for what no program can take over, such as an API key. */
  readonly exceptions: readonly string[];
}

/** Days for which a suggested exception holds. */
const EXCEPTED_DAYS = 30;
const DAY = 24 * 60 * 60_000;

/**
 * How a program comes to agree with what was found, for somebody who wants it to stay.
 * @param runner whose program it is
 */
export function acceptanceOf(
  drifted: readonly ShownStep[],
  unmanaged: readonly LiveObject[],
  now: Date,
  runner: Runner,
): Acceptance {
  const isTerraform = runner === "terraform";
  // An import of Terraform takes over whatever has an id.
  const canBe = ({ definition }: LiveObject) => isTerraform || definition.inputs.adopt !== undefined;
  const { declarable: objects, undeclarable } = declarable(unmanaged.filter(canBe));
  const left = [...unmanaged.filter((object) => !canBe(object)), ...undeclarable.map(({ object }) => object)];
  const until = new Date(now.getTime() + EXCEPTED_DAYS * DAY).toISOString().slice(0, 10);
  return {
    program: isTerraform ? terraformAdoptions(objects) : adoptions(objects),
    changes: drifted.map((step) => changeLine(step, isTerraform)),
    exceptions: left.map((object) => exceptionLine(object, until, "why it is needed")),
  };
}

function changeLine({ op, type, name, fields }: ShownStep, isTerraform: boolean): string {
  const title = isTerraform ? name : `${typeName(type)} ${JSON.stringify(name)}`;
  if (op === "delete") return `remove ${title}`;
  return `${title}: ${changedFields({ type, fields })
    .map(({ path, new: now }) => `${isTerraform ? terraformName(path) : path} = ${valueText(now)}`)
    .join(", ")}`;
}

const valueText = (value: Shown | undefined): string =>
  value === undefined ? "left out" : JSON.stringify(value);
