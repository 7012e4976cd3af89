// What it takes to evaluate a policy: `npm run bench:policy [-- --parts … --rounds N --output FILE]`. Each operation has
// a process to itself, and so has each size that a figure grows to.
import type { PolicySize } from "../test/policy/largePolicy.ts";
import { Printout } from "./commandLine.ts";
import { readArguments } from "./policy/arguments.ts";
import { measure } from "./policy/measure.ts";
import { OPERATIONS, type OperationName } from "./policy/operations.ts";
import {
  comparison,
  fleetHead,
  fleetRow,
  grownOperations,
  growthHead,
  growthRow,
  head,
} from "./policy/report.ts";
import { FLEET, GROWTH } from "./policy/sizes.ts";

const { parts, rounds, output } = readArguments();
const printout = new Printout();

async function measureFleet(): Promise<void> {
  printout.print(fleetHead());
  const base = { size: FLEET, rounds };
  for (const name of Object.keys(OPERATIONS) as OperationName[]) {
    printout.print(fleetRow(await measure({ ...base, operations: [name], tripleLoop: false })));
  }
  const { timed, tripleLoop } = await measure({ ...base, operations: ["grants"], tripleLoop: true });
  const [grants] = timed;
  if (!grants || !tripleLoop) throw new Error("the triple loop was not measured");
  printout.print(comparison(tripleLoop, grants));
}

async function measureGrowth(figure: keyof PolicySize): Promise<void> {
  printout.print(growthHead(figure));
  for (const more of GROWTH[figure] ?? []) {
    const size = { ...FLEET, ...more };
    const measured = await measure({ size, rounds, operations: grownOperations, tripleLoop: false });
    printout.print(growthRow(size[figure], measured));
  }
}

printout.print(head(rounds));
for (const part of parts) await (part === "fleet" ? measureFleet() : measureGrowth(part as keyof PolicySize));
printout.write(output);
