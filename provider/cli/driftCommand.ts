import { writeFile } from "node:fs/promises";
import { type Command, Option } from "commander";
import type { NotedRun, NoticeKept } from "../drift/driftNotice.ts";
import { type DriftReport, isDrift, type UnmanagedMode } from "../drift/driftReport.ts";
import type { DriftSearch, FoundDrift } from "../drift/findDrift.ts";
import { EngineError, type Plan, readProject, typeName } from "../engine/index.ts";
import type { TestedNamespace } from "../review/testedNamespace.ts";
import type { Connection } from "../service/connection.ts";
import {
  addStackFlags,
  addTargetFlags,
  allowUnseenOption,
  collect,
  type TargetFlags,
  targetsOf,
  YES,
} from "./flags.ts";
import type { ActionOf, Io, Output } from "./io.ts";
import { addWithStackFlag, otherResources, resourcesOf, type WithStackFlags } from "./managedBy.ts";
import type { Service } from "./openOnService.ts";
import {
  addNoTestsFlag,
  hasPolicyTests,
  isTestsFailed,
  printTested,
  TESTING,
  TESTS_FAILED,
} from "./policyTestRun.ts";
import { colours } from "./render.ts";
import { printResult, type RunFlags, type Running, run } from "./run.ts";
import { addTerraformFlag, readTerraform, type TerraformFlags } from "./terraformPlan.ts";
import { tellingOf, withConnection } from "./withConnection.ts";

/** How messages are written: as this project's JSON, or as Slack's incoming webhooks take them. */
const NOTICE_FORMS = ["json", "slack"] as const;
type NoticeForm = (typeof NOTICE_FORMS)[number];

/** The exit code of `gatehouse drift` where something differs. */
export const DRIFT_FOUND = 2;

interface Flags extends TargetFlags, RunFlags, WithStackFlags, TerraformFlags {
  readonly unmanaged: UnmanagedMode;
  readonly repair?: boolean;
  readonly adoptFrom: readonly string[];
  readonly markdown?: string;
  readonly junit?: string;
  readonly html?: string;
  readonly notify?: NoticeForm;
  readonly notified?: string;
}

/** Adds drift, which compares program, state and live service. */
export function addDriftCommand(program: Command, action: ActionOf): void {
  const drift = addStackFlags(addTargetFlags(program.command("drift")))
    .description(
      `show what somebody changed or deleted by hand, and what is there but in no program, and ${TESTING} is; exits ` +
        "with 2 where there is any of it, a test fails, an API key has expired or is due, or something could not be " +
        "looked at",
    )
    .addOption(
      new Option("--unmanaged <what>", "what objects in no program mean: exit code 2, a mention, or nothing")
        .choices(["fail", "warn", "ignore"])
        .default("fail"),
    )
    .option("--repair", "after a question make all of it as the program says; removes what is in no program")
    .option(
      "--adopt-from <stack>",
      "with --repair: also remove or change what this other stack declared last, as stack or project/stack; may be repeated",
      collect,
      [],
    )
    .option("-y, --yes", YES)
    .addOption(allowUnseenOption())
    .option("--json", "print the report as JSON")
    .option("--markdown <file>", "write it as the text of an issue or a comment")
    .option("--junit <file>", "write it as JUnit XML, which pipelines show as test results")
    .option("--html <file>", "write the access map, one HTML file: as declared, and as it is")
    .addOption(
      new Option(
        "--notify <form>",
        "send a message to the webhook GATEHOUSE_NOTIFY_URL where the findings are others than last time",
      )
        .choices(NOTICE_FORMS)
        .conflicts(["target", "exclude"]),
    )
    .option(
      "--notified <file>",
      "what was last sent; default access.notified.<stack>.json beside the program",
    );
  addTerraformFlag(
    drift,
    "report what this plan of Terraform or OpenTofu found changed, instead of a Pulumi stack",
    OF_PULUMI,
  );
  addNoTestsFlag(addWithStackFlag(drift)).action(
    action((io, folder: string, flags: Flags) =>
      flags.terraform === undefined
        ? stackDrift(io, folder, flags)
        : terraformDrift(io, folder, flags, flags.terraform),
    ),
  );
}

/** Flags about what only a Pulumi program has; Terraform repairs by an apply. */
const OF_PULUMI = ["stack", "engine", "target", "exclude", "repair", "adoptFrom", "offline"];

const codeOf = (report: DriftReport, { allowUnseen = false }: Flags): number =>
  isDrift(report) || (report.unseen.length > 0 && !allowUnseen) ? DRIFT_FOUND : 0;

/** Drift of a Pulumi stack. */
async function stackDrift(io: Io, folder: string, flags: Flags): Promise<number> {
  const notifying = await notifyingOf(io, folder, flags);
  let drifted: Drifted | undefined;
  const work = async (running: Running) => {
    drifted = await drifting(running, folder, flags);
    return drifted.found.report;
  };
  const after = async (tests?: TestedNamespace) => {
    if (!drifted) return;
    await write(io.stderr, drifted.found, tests, flags);
    await notifying?.({ ...drifted, tests });
  };
  const code = (report: DriftReport) => codeOf(report, flags);
  return run(io, folder, flags, work, { tested: "live", code, text: textOf, after, isWriting: flags.repair });
}

/** Drift as a plan of Terraform has found it. */
async function terraformDrift(io: Io, folder: string, flags: Flags, file: string): Promise<number> {
  const notifying = await notifyingOf(io, folder, flags);
  const { plan, drift, resources, settings, unseen, provider } = await readTerraform(io, folder, file);
  const { findDrift } = await import("../drift/findDrift.ts");
  const { ownResources } = await import("../estate/coverage.ts");
  const find = async (connection: Connection) =>
    findDrift({
      ...{ connection, targets: {}, unmanaged: flags.unmanaged, language: "terraform" },
      home: await connection.homeIfAny(),
      stack: { drift: async () => drift, preview: async () => plan },
      own: ownResources(resources, connection.client.url),
      unseen,
      ...(provider !== undefined && { provider }),
      ...(await besideOf(io, folder, flags, plan.stack, connection)),
    });
  const found = await withConnection(io, find, settings);
  const { report } = found;
  const shown = flags.json ? undefined : await textOf(io, report);
  const withTests = flags.tests !== false && (await hasPolicyTests(folder));
  const stack = { config: async () => settings };
  if (!withTests) printResult(io, report, shown);
  const tests = withTests
    ? await printTested(io, { folder, stack, result: report, shown }, "live")
    : undefined;
  await write(io.stderr, found, tests, flags);
  await notifying?.({ found, tests });
  return isTestsFailed(tests, flags) ? TESTS_FAILED : codeOf(report, flags);
}

/** What a run ends with, and what it found before it repaired that. */
type Drifted = Pick<NotedRun, "found" | "repaired">;

async function drifting(running: Running, folder: string, flags: Flags): Promise<Drifted> {
  const { io, stack, service } = running;
  const { runtime } = await readProject(folder);
  const how = { targets: targetsOf(flags), language: runtime === "yaml" ? runtime : "typescript" } as const;
  if (!service) {
    const { stateDrift } = await import("../drift/findDrift.ts");
    return { found: await stateDrift(stack, how) };
  }
  return tellingOf(io.stderr, service.connection, async () => {
    const { findDrift } = await import("../drift/findDrift.ts");
    const search = { ...(await searchOf(running, service, folder, flags)), ...how };
    const found = await findDrift(search);
    const isRepaired =
      flags.repair && isDrift(found.report) && (await repaired(running, search, found, flags));
    if (!isRepaired) return { found };
    await service.connection.forget();
    const left = await findDrift({ ...search, own: await resourcesOf(running.stack, search.connection) });
    return { found: left, repaired: found.report };
  });
}

/**
 * What tells a webhook of a run; undefined where nobody asks for it.
 * @throws ConfigurationError where the address of the webhook or a proxy is missing or wrong, before anything else is done
 */
async function notifyingOf(
  { env, stderr }: Io,
  folder: string,
  { notify: form, notified }: Flags,
): Promise<((run: NotedRun) => Promise<void>) | undefined> {
  if (form === undefined) return undefined;
  const { proxiesOf, sendToWebhook, webhookAddress } = await import("../drift/webhook.ts");
  const { driftNotice, keptOf, slackMessage } = await import("../drift/driftNotice.ts");
  const { KeptFile, keptPath } = await import("../drift/KeptFile.ts");
  const url = webhookAddress(env);
  const proxies = proxiesOf(env);
  return async (run) => {
    const { stack } = run.found.report;
    const kept = new KeptFile<NoticeKept>(notified ?? keptPath(folder, "notified", stack));
    const told = (await kept.read())?.fingerprint;
    const message = form === "slack" ? slackMessage(run, told) : driftNotice(run, told);
    if (message) {
      await sendToWebhook(url, message, { proxies });
      stderr.write(`${url.host} was told of it\n`);
    }
    await kept.write(keptOf(run));
  };
}

async function searchOf(
  { io, stack }: Running,
  service: Service,
  folder: string,
  flags: Flags,
): Promise<Omit<DriftSearch, "targets" | "language">> {
  const { connection } = service;
  return {
    ...{ connection, stack, home: service, unmanaged: flags.unmanaged },
    own: await resourcesOf(stack, connection),
    ...(await besideOf(io, folder, flags, stack.stack, connection)),
  };
}

/** What is managed elsewhere or excepted, and since when what nobody manages is there. */
async function besideOf(
  io: Io,
  folder: string,
  flags: Flags,
  stack: string,
  connection: Connection,
): Promise<Pick<DriftSearch, "others" | "exceptions" | "seen">> {
  const { readExceptions } = await import("../estate/exceptions.ts");
  const { FirstSeen, KeptFile, keptPath } = await import("../drift/KeptFile.ts");
  return {
    others: await otherResources(io, folder, flags, connection),
    exceptions: await readExceptions(folder),
    seen: new FirstSeen(new KeptFile(keptPath(folder, "seen", stack))),
  };
}

/** Repairs what was found, after a question; false where there was nothing to do. */
async function repaired(
  { io, stack, ask, check, told }: Running,
  { connection }: DriftSearch,
  { report, unmanaged }: FoundDrift,
  flags: Flags,
): Promise<boolean> {
  const { removable, removeObjects, restorable } = await import("../drift/repair.ts");
  const { printable } = await import("../words.ts");
  const { objectText } = await import("../estate/liveObjects.ts");
  const c = colours(told, io.env);
  told.write(`${await textOf(io, report)}\n`);
  const objects = flags.unmanaged === "fail" ? unmanaged : [];
  const { project, stack: name } = report;
  const repairer = {
    ...{ project, stack: name, adoptFrom: flags.adoptFrom },
    identity: await connection.client.identity(),
  };
  const { done: removed, left } = removable(objects, repairer);
  const restored = restorable(report.drifted, repairer);
  const title = (object: (typeof objects)[number]) => printable(objectText(object));
  const isLeft = (what: string, reason: string) =>
    told.write(c.yellow(`   ${what} is left: ${printable(reason)}\n`));
  for (const { item, reason } of left) isLeft(title(item), reason);
  for (const { item, reason } of restored.left)
    isLeft(`${typeName(item.type)} ${printable(item.name)}`, reason);
  for (const object of removed) told.write(c.red(` -  ${title(object)}, in no program, goes\n`));
  const { confirm = async () => true } = ask("Repair all this?");
  const remove = () =>
    removeObjects(connection, removed, (object) => told.write(` -  ${title(object)} removed\n`));
  // Before anything is made again: an API key may need the name of one that is removed.
  const confirmed = async (plan: Plan) => {
    await check(plan);
    if (!(await confirm(plan))) return false;
    await remove();
    return true;
  };
  const target = restored.done.map(({ urn }) => urn);
  if (target.length > 0) await stack.up({ refresh: true, values: true, target, confirm: confirmed });
  else if (removed.length === 0 || !(await confirm(report))) return false;
  else await remove();
  return true;
}

async function textOf(io: Io, report: DriftReport): Promise<string> {
  const { driftText } = await import("../drift/report/reports.ts");
  return driftText(colours(io.stdout, io.env), report);
}

/** Writes the reports, which have the policy tests too. */
async function write(
  stderr: Output,
  found: FoundDrift,
  tests: TestedNamespace | undefined,
  { markdown, junit, html, allowUnseen = false }: Flags,
): Promise<void> {
  const { report } = found;
  if (markdown !== undefined) {
    const { driftMarkdown } = await import("../drift/report/reports.ts");
    await writeFile(markdown, driftMarkdown(report, tests));
  }
  if (junit !== undefined) {
    const { driftJunit } = await import("../drift/report/junit.ts");
    await writeFile(junit, driftJunit(report, tests, allowUnseen));
  }
  if (html !== undefined) {
    await writeFile(html, await mapOf(found));
    stderr.write(`The access map is in ${html}\n`);
  }
}

async function mapOf({ report, meanings }: FoundDrift): Promise<string> {
  const { accessMapData } = await import("../map/accessMapData.ts");
  const { accessMapHtml } = await import("../map/accessMapHtml.ts");
  const [home] = meanings;
  if (!home) throw new EngineError("usage", "--html: no service is set, so there is no access to draw.");
  const { project, stack, service = "", unseen, notes } = report;
  const data = accessMapData(home.before, home.after, {
    title: `Drift of access to ${home.namespace.name}: as declared, and as it is`,
    ...{ project, stack, service, when: new Date().toISOString(), notes: [...unseen, ...notes] },
  });
  return accessMapHtml(data);
}
