import { adoptions } from "../adoption/program/writeProgram.ts";
import { type Shown, type ShownStep, typeName } from "../engine/index.ts";
import { exceptionLine } from "../inventory/exceptions.ts";
import { declarable, type LiveObject } from "../inventory/liveObjects.ts";
import { changedFields } from "./changedFields.ts";

/** What makes a program agree with what was found, in the languages of a program and of access.ignore. */
export interface Acceptance {
  /** TypeScript that declares what is in no program, and takes it over. */
  readonly program: string;
  /** What to change in the program, a line for each resource. */
  readonly changes: readonly string[];
  /** Lines of access.ignore for what no program can take over, such as an API key. */
  readonly exceptions: readonly string[];
}

/** Days for which a suggested exception holds. */
const EXCEPTED_DAYS = 30;
const DAY = 24 * 60 * 60_000;

/** How a program comes to agree with what was found, for somebody who wants it to stay. */
export function acceptanceOf(
  drifted: readonly ShownStep[],
  unmanaged: readonly LiveObject[],
  now: Date,
): Acceptance {
  const adoptable = unmanaged.filter(({ definition }) => definition.inputs.adopt !== undefined);
  const { declarable: objects, undeclarable } = declarable(adoptable);
  const left = [
    ...unmanaged.filter(({ definition }) => definition.inputs.adopt === undefined),
    ...undeclarable.map(({ object }) => object),
  ];
  const until = new Date(now.getTime() + EXCEPTED_DAYS * DAY).toISOString().slice(0, 10);
  return {
    program: adoptions(objects),
    changes: drifted.map(changeLine),
    exceptions: left.map((object) => exceptionLine(object, until, "why it is needed")),
  };
}

function changeLine({ op, type, name, fields }: ShownStep): string {
  const title = `${typeName(type)} ${JSON.stringify(name)}`;
  if (op === "delete") return `remove ${title}`;
  return `${title}: ${changedFields({ type, fields })
    .map(({ path, new: now }) => `${path} = ${valueText(now)}`)
    .join(", ")}`;
}

const valueText = (value: Shown | undefined): string =>
  value === undefined ? "left out" : JSON.stringify(value);
