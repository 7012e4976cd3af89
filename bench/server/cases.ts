import type { Case } from "./case.ts";
import { CONNECTIONS } from "./load.ts";
import { reads } from "./reads.ts";
import { writes } from "./writes.ts";

const half = `by ${CONNECTIONS / 2} connections`;

/** All cases by their names on the command line. */
export const CASES: Readonly<Record<string, Case>> = {
  ...reads,
  ...writes,
  mixed: {
    ...writes["key-create"],
    title: `key create ${half}, beside the 100-key list`,
    beside: { ...reads.keys, title: `100-key list ${half}, beside key create` },
  },
};
