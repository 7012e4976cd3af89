// The flags of the demo. A module in JavaScript, so that `scripts/run.mjs` can check the flags before it builds the
// packages, with a Node that runs no TypeScript.
import { existsSync } from "node:fs";
import { parseArgs } from "node:util";

export const HELP = `npm run demo -- [--engine cli|embedded] [--destroy] [--keep <folder>]

  --engine   the engine that runs the program (default: cli if pulumi is on the PATH, otherwise embedded)
  --destroy  destroy the policy's objects at the end
  --keep     keep the service running, and write its data, the policy and its state to this new folder. Run
             ". <folder>/environment" to use gatehouse with the service`;

/** Reads the flags. Ends the process with an error and the help if a flag is wrong, or if the kept folder exists. */
export function readFlags(args) {
  try {
    const { values } = parseArgs({
      args,
      options: {
        engine: { type: "string" },
        destroy: { type: "boolean", default: false },
        keep: { type: "string" },
        help: { type: "boolean", default: false },
      },
    });
    if (values.engine && !["cli", "embedded"].includes(values.engine)) {
      throw new Error(`--engine cannot be ${values.engine}. Choose cli or embedded.`);
    }
    if (values.keep !== undefined && existsSync(values.keep)) {
      throw new Error(`--keep: the folder ${values.keep} exists already. Choose a new folder.`);
    }
    return values;
  } catch (error) {
    console.error(`${error.message}\n\n${HELP}`);
    process.exit(1);
  }
}
