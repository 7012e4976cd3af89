import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Command, Option } from "commander";
import { type DriftReport, isDrift, type UnmanagedMode } from "../drift/driftReport.ts";
import type { DriftSearch, FoundDrift } from "../drift/findDrift.ts";
import { EngineError, type Plan } from "../engine/index.ts";
import { addStackFlags, addTargetFlags, type TargetFlags, targetsOf } from "./flags.ts";
import type { ActionOf, Io, Output } from "./io.ts";
import { addWithStackFlag, otherResources, resourcesOf, type WithStackFlags } from "./managedBy.ts";
import { requireTenant, type Service } from "./openOnService.ts";
import { addNoTestsFlag, TESTING } from "./policyTestRun.ts";
import { colours } from "./render.ts";
import { type RunFlags, type Running, run } from "./run.ts";
import { tellingOf } from "./withConnection.ts";

/** The exit code of `gatehouse drift` where something differs. */
export const DRIFT_FOUND = 2;

interface Flags extends TargetFlags, RunFlags, WithStackFlags {
  readonly unmanaged: UnmanagedMode;
  readonly repair?: boolean;
  readonly markdown?: string;
  readonly junit?: string;
  readonly html?: string;
}

/** Adds drift, which compares program, state and live service. */
export function addDriftCommand(program: Command, action: ActionOf): void {
  const drift = addStackFlags(addTargetFlags(program.command("drift")))
    .description(
      `show what somebody changed or deleted by hand, and what is there but in no program, and ${TESTING} is; exits ` +
        "with 2 where there is any of it or a test fails",
    )
    .addOption(
      new Option("--unmanaged <what>", "what objects in no program mean: exit code 2, a mention, or nothing")
        .choices(["fail", "warn", "ignore"])
        .default("fail"),
    )
    .option("--repair", "after a question make all of it as the program says; removes what is in no program")
    .option("-y, --yes", "do not ask")
    .option("--json", "print the report as JSON")
    .option("--markdown <file>", "write it as the text of an issue or a comment")
    .option("--junit <file>", "write it as JUnit XML, which pipelines show as test results")
    .option("--html <file>", "write the access map, one HTML file: as declared, and as it is");
  addNoTestsFlag(addWithStackFlag(drift)).action(
    action((io, folder: string, flags: Flags) =>
      run(io, folder, flags, (running) => drifting(running, folder, flags), {
        tested: "live",
        code: (report) => (isDrift(report) ? DRIFT_FOUND : 0),
        text: textOf,
      }),
    ),
  );
}

async function drifting(running: Running, folder: string, flags: Flags): Promise<DriftReport> {
  const { io, stack, service } = running;
  if (!service) {
    const { stateDrift } = await import("../drift/findDrift.ts");
    const found = await stateDrift(stack, targetsOf(flags));
    await write(io.stderr, found, flags);
    return found.report;
  }
  return tellingOf(io.stderr, service.connection, async () => {
    const { findDrift } = await import("../drift/findDrift.ts");
    const search = await searchOf(running, service, folder, flags);
    let found = await findDrift(search);
    if (flags.repair && isDrift(found.report) && (await repaired(running, search, found, flags))) {
      await service.connection.forget();
      found = await findDrift({ ...search, own: await resourcesOf(running.stack, search.connection) });
    }
    await write(io.stderr, found, flags);
    return found.report;
  });
}

async function searchOf(
  { io, stack }: Running,
  service: Service,
  folder: string,
  flags: Flags,
): Promise<DriftSearch> {
  const { readExceptions } = await import("../inventory/exceptions.ts");
  const { FirstSeen } = await import("../drift/firstSeen.ts");
  const { connection } = service;
  return {
    connection,
    home: requireTenant(service),
    stack,
    targets: targetsOf(flags),
    unmanaged: flags.unmanaged,
    own: await resourcesOf(stack, connection),
    others: await otherResources(io, folder, flags, connection),
    exceptions: await readExceptions(folder),
    seen: new FirstSeen(join(folder, `access.seen.${stack.stack}.json`)),
  };
}

/** Repairs what was found, after a question; false where there was nothing to do. */
async function repaired(
  { io, stack, ask, told }: Running,
  { connection }: DriftSearch,
  { report, unmanaged }: FoundDrift,
  flags: Flags,
): Promise<boolean> {
  const { removable, removeObjects } = await import("../drift/repair.ts");
  const { printable } = await import("../review/words/printable.ts");
  const { objectText } = await import("../inventory/liveObjects.ts");
  const c = colours(told, io.env);
  told.write(`${await textOf(io, report)}\n`);
  const objects = flags.unmanaged === "fail" ? unmanaged : [];
  const { removed, left } = removable(objects, await connection.client.identity());
  const title = (object: (typeof objects)[number]) => printable(objectText(object));
  for (const { object, reason } of left) told.write(c.yellow(`   ${title(object)} is left: ${reason}\n`));
  for (const object of removed) told.write(c.red(` -  ${title(object)}, in no program, goes\n`));
  const { confirm = async () => true } = ask("Repair all this?");
  const remove = () =>
    removeObjects(connection, removed, (object) => told.write(` -  ${title(object)} removed\n`));
  // Before anything is made again: an API key may need the name of one that is removed.
  const confirmed = async (plan: Plan) => {
    if (!(await confirm(plan))) return false;
    await remove();
    return true;
  };
  const target = report.drifted.map(({ urn }) => urn);
  if (target.length > 0) await stack.up({ refresh: true, target, confirm: confirmed });
  else if (removed.length === 0 || !(await confirmed(report))) return false;
  return true;
}

async function textOf(io: Io, report: DriftReport): Promise<string> {
  const { driftText } = await import("../drift/report/reports.ts");
  return driftText(colours(io.stdout, io.env), report);
}

async function write(stderr: Output, found: FoundDrift, { markdown, junit, html }: Flags): Promise<void> {
  const { report } = found;
  if (markdown !== undefined) {
    const { driftMarkdown } = await import("../drift/report/reports.ts");
    await writeFile(markdown, driftMarkdown(report));
  }
  if (junit !== undefined) {
    const { driftJunit } = await import("../drift/report/junit.ts");
    await writeFile(junit, driftJunit(report));
  }
  if (html !== undefined) {
    await writeFile(html, await mapOf(found));
    stderr.write(`The access map is in ${html}\n`);
  }
}

async function mapOf({ report, meanings }: FoundDrift): Promise<string> {
  const { accessMapData, accessMapHtml } = await import("../review/map/index.ts");
  const [home] = meanings;
  if (!home) throw new EngineError("usage", "--html: no service is set, so there is no access to draw.");
  const { project, stack, service = "", notes } = report;
  const data = accessMapData(home.before, home.after, {
    title: `Drift of access to ${home.namespace.name}: as declared, and as it is`,
    ...{ project, stack, service, when: new Date().toISOString(), notes },
  });
  return accessMapHtml(data);
}
