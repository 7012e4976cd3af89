// What the Terraform provider costs beside resources that do nothing: `npm run bench:terraform [-- --sizes N,N,… --write]`.
// The provider is installed as people install it, and its rules are those of a service on this machine.
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hasTerraform, PROVIDER, RootModule } from "../test/terraform/support/terraform.ts";
import { Printout } from "./commandLine.ts";
import { readArguments } from "./terraform/arguments.ts";
import { type Measured, measure, type States } from "./terraform/measure.ts";
import { installProvider } from "./terraform/modules.ts";
import { goals, head, row } from "./terraform/report.ts";
import { startService } from "./terraform/service.ts";
import { startOfProvider } from "./terraform/start.ts";

const STARTS = 5;

const { sizes, output } = readArguments();
if (!hasTerraform) throw new Error("there is no terraform on the PATH");
if (!existsSync(PROVIDER)) throw new Error("there is no provider: node scripts/release/bundle.ts makes it");

const folder = mkdtempSync(join(tmpdir(), "gatehouse-bench-"));
const service = await startService(folder);
try {
  const installed = await installProvider(folder);
  const terraform = JSON.parse(await new RootModule(join(folder, "none"), {}).must("version", "-json"));
  const printout = new Printout();
  printout.print(head(terraform.terraform_version));
  const start = await startOfProvider(installed.file, folder, STARTS);
  const measured = new Map<number, Measured>();
  let states: States | undefined;
  for (const size of sizes) {
    const report = (timing: Parameters<typeof row>[0]) => printout.print(row(timing));
    const result = await measure({ folder, installed, service, report }, size, states);
    states ??= result.states;
    measured.set(size, result);
  }
  printout.print(goals({ start, sizes: measured }));
  printout.write(output);
} finally {
  await service.stop();
  rmSync(folder, { recursive: true, force: true });
}
