// The flags of the demo. This module is in JavaScript, because `scripts/run.mjs` checks the flags before it builds the
// packages. That script also runs with Node.js versions that cannot run TypeScript.
import { existsSync } from "node:fs";
import { parseArgs } from "node:util";

export const HELP = `npm run demo -- [--engine cli|embedded] [--destroy] [--keep <folder>]

  --engine   the engine that runs the program (default: cli if pulumi is on the PATH, otherwise embedded)
  --destroy  destroy the policy's objects at the end
  --keep     keep the service running, and write its data, the policy and its state to this new folder. Run
             ". <folder>/environment" to use gatehouse with the service`;

/**
 * Reads the flags. If a flag is wrong, or if the folder of `--keep` exists, prints an error and the help, and ends the
 * process.
 */
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
      throw new Error(`--keep: the folder ${values.keep} already exists. Choose a new folder.`);
    }
    return values;
  } catch (error) {
    console.error(`${error.message}\n\n${HELP}`);
    process.exit(1);
  }
}
