import { writeFileSync } from "node:fs";
import { type ParseArgsConfig, parseArgs } from "node:util";

type Options = NonNullable<ParseArgsConfig["options"]>;
type Values<O extends Options> = ReturnType<typeof parseArgs<{ options: O }>>["values"];

/**
 * The arguments of the command line; where something is wrong with them, the process ends with that and the usage.
 * @param read makes them of the options, or says what is wrong
 */
export function readCommandLine<O extends Options, A extends object>(
  options: O,
  usage: string,
  read: (values: Values<O>) => A | string,
): A {
  const values = parsed(options);
  const found = typeof values === "string" ? values : read(values);
  if (typeof found !== "string") return found;
  console.error(`${found}\n${usage}`);
  process.exit(2);
}

function parsed<O extends Options>(options: O): Values<O> | string {
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** What a benchmark says, line by line. */
export class Printout {
  readonly #lines: string[] = [];

  print(line: string): void {
    this.#lines.push(line);
    console.log(line);
  }

  /** Writes all of it to the file as well, if there is one. */
  write(file: string | undefined): void {
    if (file !== undefined) writeFileSync(file, `${this.#lines.join("\n")}\n`);
  }
}
