import { parseArgs } from "node:util";

/** An option of a command. */
export interface Option<T> {
  /** The placeholder of the value in the usage; undefined for a flag, which has no value. */
  readonly value?: string;
  readonly description: string;
  /**
   * Parses the option's value.
   * @param text the value in the command line; undefined if the command line does not contain the option
   * @throws Error with the rule that the text violates
   */
  read(text: string | undefined): T;
}

type Options = Readonly<Record<string, Option<unknown>>>;
type Values<O extends Options> = { readonly [N in keyof O]: ReturnType<O[N]["read"]> };

/**
 * Reads the options of the command line. `--help` prints the usage and ends the process. For a wrong option, the
 * process prints the error and the usage, and ends with exit code 2.
 * @param command the npm script
 * @param notes text that the usage shows below the options
 */
export function readOptions<O extends Options>(command: string, options: O, notes = ""): Values<O> {
  try {
    const types = Object.entries(options).map(
      ([name, { value }]) => [name, { type: value === undefined ? "boolean" : "string" }] as const,
    );
    const { values } = parseArgs({ options: { ...Object.fromEntries(types), help: { type: "boolean" } } });
    if (!values.help) return valuesOf(options, values);
    console.log(usageOf(command, options) + notes);
    process.exit(0);
  } catch (error) {
    console.error(`${(error as Error).message}\n${usageOf(command, options)}${notes}`);
    process.exit(2);
  }
}

function valuesOf<O extends Options>(options: O, texts: Readonly<Record<string, unknown>>): Values<O> {
  const entries = Object.entries(options).map(([name, { read }]) => {
    try {
      return [name, read(texts[name]?.toString())];
    } catch (error) {
      throw new Error(`--${name} ${(error as Error).message}`);
    }
  });
  return Object.fromEntries(entries) as Values<O>;
}

function usageOf(command: string, options: Options): string {
  const rows = Object.entries(options).map(
    ([name, { value = "", description }]) => [`--${name} ${value}`.trim(), description] as const,
  );
  const width = Math.max(...rows.map(([form]) => form.length));
  const lines = rows.map(([form, description]) => `  ${form.padEnd(width)}  ${description}`);
  return [`Usage: npm run ${command} [-- options]`, ...lines].join("\n");
}

/** Defines a flag. */
export const flag = (description: string): Option<boolean> => ({
  description,
  read: (text) => text !== undefined,
});

/** Defines a text option. */
export const text = (value: string, description: string): Option<string | undefined> => ({
  value,
  description,
  read: (given) => given,
});

/** Defines an option for a whole number from `least` to 999999. */
export const wholeNumber = (description: string, usual: number, least = 1): Option<number> => ({
  value: "N",
  description: `${description}, default ${usual}`,
  read(given = String(usual)) {
    if (/^\d{1,6}$/.test(given) && Number(given) >= least) return Number(given);
    throw new Error(`must be a whole number from ${least} to 999999`);
  },
});

/** Defines an option whose value is a list of names, separated by commas. */
export const names = <N extends string>(all: readonly N[]): Option<readonly N[]> => ({
  value: "A,B,…",
  description: `${all.join(", ")}; default: all`,
  read(given = all.join()) {
    const chosen = given.split(",").filter(Boolean);
    const isKnown = (name: string): name is N => (all as readonly string[]).includes(name);
    if (chosen.every(isKnown)) return chosen;
    throw new Error(`must be a list of: ${all.join(", ")}`);
  },
});

/** The option for the databases that the benchmark measures. */
export const databases: Option<readonly ("sqlite" | "postgresql")[]> = {
  value: "NAME",
  description: "sqlite, postgresql, both; default: both",
  read(given = "both") {
    if (given === "both") return ["sqlite", "postgresql"];
    if (given === "sqlite" || given === "postgresql") return [given];
    throw new Error("must be one of sqlite, postgresql, both");
  },
};

/** The option for the output file of the report. */
export const output = text("FILE", "also write the report to this file, as Markdown");
