import { type Command, Option } from "@commander-js/extra-typings";
import type { NotedRun, NoticeKept } from "../drift/driftNotice.ts";
import { type DriftReport, isDrift } from "../drift/driftReport.ts";
import type { DriftSearch, FoundDrift } from "../drift/findDrift.ts";
import { EngineError, type Plan, readProject, typeName, withoutValues } from "../engine/index.ts";
import type { OwnResource } from "../namespace/coverage.ts";
import type { TestedNamespace } from "../review/testedNamespace.ts";
import type { Connection } from "../service/connection.ts";
import { urnName } from "../urn.ts";
import { type ActionOf, BLOCKED, type CommandOutput, type Io, type Output } from "./commandOutput.ts";
import {
  addStackFlags,
  addTargetFlags,
  allowIncompleteOption,
  collect,
  type FlagsOf,
  noTestsOption,
  targetsOf,
  terraformOption,
  withStackOption,
  YES,
} from "./flags.ts";
import { addHelp } from "./help.ts";
import { readTerraform } from "./planFiles.ts";
import { hasPolicyTests, runPolicyTests, TESTING } from "./policyTests.ts";
import { colors, writeAccessMap } from "./render.ts";
import { otherResources, resourcesOf, withConnection, withReleaseNote } from "./service.ts";
import { type Running, withStack } from "./withStack.ts";
import { writeOutput } from "./writeOutput.ts";

const NOTICE_FORMS = ["json", "slack"] as const;

type Flags = FlagsOf<typeof driftCommand>;

const driftCommand = (program: Command) =>
  addStackFlags(addTargetFlags(program.command("drift")))
    .addOption(
      new Option(
        "--unmanaged <mode>",
        "Treatment of unmanaged objects: fail exits with code 2, warn only reports the objects, ignore does not search for them",
      )
        .choices(["fail", "warn", "ignore"])
        .default("fail"),
    )
    .option("--repair", "Revert drift and delete unmanaged objects, after confirmation")
    .option(
      "--adopt-from <stack>",
      "With --repair: also delete or change objects that another stack declared last. Set <stack> to stack or project/stack; repeatable",
      collect,
      [],
    )
    .option(
      "--delete-forgotten",
      "With --repair: also delete objects that this stack declared earlier and that its state does not contain",
    )
    .option("-y, --yes", YES)
    .addOption(allowIncompleteOption())
    .option("--json", "Print the report as JSON")
    .option("--markdown <file>", "Write the report as Markdown, for an issue or a comment")
    .option("--junit <file>", "Write the report as JUnit XML, for the test results of a pipeline")
    .option("--html <file>", "Write an HTML file with a map of the declared and the live access")
    .addOption(
      new Option(
        "--notify <form>",
        "Post a message to the webhook GATEHOUSE_NOTIFY_URL if the findings have changed",
      )
        .choices(NOTICE_FORMS)
        .conflicts(["target", "exclude"]),
    )
    .option(
      "--notify-state <file>",
      "File that stores the fingerprint of the last notified findings (default: access.notified.<stack>.json in the project directory)",
    )
    .addOption(
      terraformOption(
        "Report the drift in this plan of Terraform or OpenTofu instead of the drift of a stack",
        ["stack", "engine", "target", "exclude", "repair", "adoptFrom", "deleteForgotten", "offline"],
      ),
    )
    .addOption(withStackOption())
    .addOption(noTestsOption());

export function addDriftCommand(program: Command, action: ActionOf): void {
  addHelp(driftCommand(program).action(action(drift)), {
    group: "Operate a fleet:",
    summary: "Find changes made outside the program, and unmanaged objects.",
    description:
      `${TESTING} live namespaces. Exits with code 2 if there is drift, an unmanaged object, a failed test, an API ` +
      "key that has expired or is due for rotation, or a part that could not be checked.",
    examples: [
      "gatehouse drift policy --stack prod",
      "gatehouse drift policy --stack prod --notify slack --junit drift.xml",
      "gatehouse drift policy --stack prod --repair",
    ],
    page: "docs/guides/drift.md",
  });
}

async function drift(io: Io, folder: string, flags: Flags): Promise<CommandOutput> {
  const notify = await notifierOf(io, folder, flags);
  const outputOf = (run: NotedRun, policyTests: CommandOutput["policyTests"]): CommandOutput => {
    const { report } = run.found;
    const isBlocked = isDrift(report) || (report.notEvaluated.length > 0 && !flags.allowIncomplete);
    return {
      result: withoutValues(report),
      text: () => driftText(io, report),
      exitCode: isBlocked ? BLOCKED : 0,
      policyTests,
      async afterPrint(tests) {
        await writeReports(io.stderr, run.found, tests, flags);
        await notify?.({ ...run, tests });
      },
    };
  };
  if (flags.terraform !== undefined) {
    const terraform = await readTerraform(io, folder, flags.terraform);
    const { settings, provider, isProjectNamed, notes } = terraform;
    const { findDrift } = await import("../drift/findDrift.ts");
    const { liveReader } = await import("../drift/liveReader.ts");
    const { ownResources } = await import("../namespace/coverage.ts");
    const find = async (connection: Connection) => {
      const { url } = connection.client;
      const live = await terraform.compareWithLive(url, liveReader(connection));
      const { plan, drift, resources } = live;
      const own = ownResources(resources, url);
      const found = await findDrift({
        connection,
        targets: {},
        unmanaged: flags.unmanaged,
        language: "terraform",
        provider,
        notes,
        notEvaluated: [...terraform.notEvaluated, ...live.notEvaluated],
        // If no project is set, the plans of two folders with the same name have the same project and stack name.
        // Declarations in the audit trail then do not identify the stack, so the search gets no declarer.
        declarer: isProjectNamed ? plan : undefined,
        home: await connection.homeIfAny(),
        stack: { drift: async () => drift, preview: async () => plan },
        own,
        ...(await managedOrExcepted(io, folder, flags, plan.stack, connection)),
      });
      return { found, own };
    };
    const { found, own } = await withConnection(io, settings, find, "terraform");
    const tested = { own: async () => own };
    const policyTests = () => runPolicyTests(io, folder, flags, settings, tested, "terraform");
    return outputOf({ found }, (await hasPolicyTests(folder, flags)) ? policyTests : undefined);
  }
  return withStack(io, folder, { ...flags, isWriting: flags.repair }, async (running) => {
    const hasTests = await hasPolicyTests(folder, flags);
    const own = (connection: Connection) => resourcesOf(running.stack, connection);
    const policyTests = async () =>
      runPolicyTests(running.io, folder, flags, await running.stack.config(), { own });
    return outputOf(await stackDrift(running, folder, flags), hasTests ? policyTests : undefined);
  });
}

async function stackDrift(running: Running, folder: string, flags: Flags): Promise<NotedRun> {
  const { io, stack, service } = running;
  const { runtime } = await readProject(folder);
  const how = { targets: targetsOf(flags), language: runtime === "yaml" ? runtime : "typescript" } as const;
  if (!service) {
    const { stateDrift } = await import("../drift/findDrift.ts");
    return { found: await stateDrift(stack, how) };
  }
  const { connection } = service;
  return withReleaseNote(io, connection, async () => {
    const { findDrift } = await import("../drift/findDrift.ts");
    const search: DriftSearch = {
      connection,
      stack,
      home: service,
      unmanaged: flags.unmanaged,
      declarer: stack,
      own: await resourcesOf(stack, connection),
      ...(await managedOrExcepted(io, folder, flags, stack.stack, connection)),
      ...how,
    };
    const found = await findDrift(search);
    if (
      !flags.repair ||
      !isDrift(found.report) ||
      !(await repair(running, connection, search.own, found, flags))
    )
      return { found };
    await connection.forget();
    const left = await findDrift({ ...search, own: await resourcesOf(stack, connection) });
    return { found: left, repaired: found.report };
  });
}

/**
 * Returns the managed resources of other stacks, the exceptions in `access.ignore`, and the file that stores when
 * `drift` first found each unmanaged object.
 */
async function managedOrExcepted(
  io: Io,
  folder: string,
  flags: Flags,
  stack: string,
  connection: Connection,
): Promise<Pick<DriftSearch, "others" | "exceptions" | "seen">> {
  const { readExceptions } = await import("../namespace/coverage.ts");
  const { KeptFile, keptPath } = await import("../drift/KeptFile.ts");
  return {
    others: await otherResources(io, folder, flags, connection),
    exceptions: await readExceptions(folder),
    seen: new KeptFile(keptPath(folder, "seen", stack)),
  };
}

/**
 * Returns a function that sends the findings of a run to the webhook; undefined without `--notify`.
 * @throws ConfigurationError if the address of the webhook or of a proxy is missing or invalid
 */
async function notifierOf(
  { env, stderr }: Io,
  folder: string,
  { notify: form, notifyState }: Flags,
): Promise<((run: NotedRun) => Promise<void>) | undefined> {
  if (form === undefined) return undefined;
  const { proxiesFromEnvironment } = await import("@gatehouse-access/sdk");
  const { sendToWebhook, webhookAddress } = await import("../drift/webhook.ts");
  const { driftNotice, keptOf, slackMessage } = await import("../drift/driftNotice.ts");
  const { KeptFile, keptPath } = await import("../drift/KeptFile.ts");
  const url = webhookAddress(env);
  const proxy = proxiesFromEnvironment(env)(url);
  return async (run) => {
    const { stack } = run.found.report;
    const kept = new KeptFile<NoticeKept>(notifyState ?? keptPath(folder, "notified", stack));
    const lastSent = (await kept.read())?.fingerprint;
    const message = form === "slack" ? slackMessage(run, lastSent) : driftNotice(run, lastSent);
    if (message) {
      await sendToWebhook(url, message, { proxy });
      stderr.write(`Notified ${url.host}.\n`);
    }
    await kept.write(keptOf(run));
  };
}

const UNRECORDED =
  "the service does not record whether another stack declares the object; run the repair at a terminal without --yes to confirm each deletion";

/** Reverts drift and deletes unmanaged objects, after a confirmation. Resolves with false if nothing changed. */
async function repair(
  { io, stack, prompt, confirmOne, preflight, progress }: Running,
  connection: Connection,
  own: readonly OwnResource[],
  { report, meanings, unmanaged }: FoundDrift,
  flags: Flags,
): Promise<boolean> {
  const { declarationsOf, removable, removeObjects, restorable } = await import("../drift/repair.ts");
  const { printable } = await import("../words.ts");
  const { objectText } = await import("../namespace/liveObjects.ts");
  const c = colors(progress, io.env);
  progress.write(`${await driftText(io, report)}\n`);
  const objects = flags.unmanaged === "fail" ? unmanaged : [];
  const { project, stack: name } = report;
  const closed = meanings.filter(
    ({ before, accessUnknown }) => accessUnknown !== undefined || before.decider.deniesEverything,
  );
  const repairer = {
    project,
    stack: name,
    adoptFrom: flags.adoptFrom,
    resources: new Set(own.map(({ urn }) => urnName(urn))),
    deletesForgotten: flags.deleteForgotten ?? false,
    closed: new Set(closed.map(({ namespace }) => namespace.tenant)),
    identity: await connection.client.identity(),
  };
  const { known, unknown } = await declarationsOf(connection, objects);
  const { done: surelyRemoved, left } = removable(known, repairer);
  const undeclared = unknown.map((object) => ({ object, declaredBy: undefined }));
  const { done: possiblyRemoved, left: alsoLeft } = removable(undeclared, repairer);
  const restored = restorable(report, repairer);
  const title = (object: (typeof objects)[number]) => printable(objectText(object));
  const printSkipped = (what: string, reason: string) =>
    progress.write(c.yellow(`   ${what} stays: ${printable(reason)}\n`));
  for (const { item, reason } of [...left, ...alsoLeft]) printSkipped(title(item), reason);
  for (const { item, reason } of restored.left)
    printSkipped(`${typeName(item.type)} ${printable(item.name)}`, reason);
  const removed = [...surelyRemoved];
  for (const object of possiblyRemoved) {
    const question = `Delete ${title(object)}? The service does not record whether another stack declares it.`;
    if (confirmOne === undefined) printSkipped(title(object), UNRECORDED);
    else if (await confirmOne(question)) removed.push(object);
  }
  for (const object of removed) progress.write(c.red(` -  ${title(object)} (unmanaged) will be deleted\n`));
  const { confirm = async () => true } = prompt("Repair?");
  const remove = () =>
    removeObjects(connection, removed, (object) => progress.write(` -  ${title(object)} deleted\n`));
  // Deletions come first: a recreated API key may need the name of a deleted API key.
  const confirmAndRemove = async (plan: Plan) => {
    await preflight(plan);
    if (!(await confirm(plan))) return false;
    await remove();
    return true;
  };
  const target = restored.done.map(({ urn }) => urn);
  // A recreated object, such as a service account, can get a different id. The repair then also updates the resources
  // that refer to the object.
  const targetDependents = restored.done.some(({ op }) => op === "delete");
  if (target.length > 0)
    await stack.up({ refresh: true, values: true, target, targetDependents, confirm: confirmAndRemove });
  else if (removed.length === 0 || !(await confirm(report))) return false;
  else await remove();
  return true;
}

async function driftText(io: Io, report: DriftReport): Promise<string> {
  const { driftText } = await import("../drift/report/reports.ts");
  return driftText(colors(io.stdout, io.env), report);
}

async function writeReports(
  stderr: Output,
  found: FoundDrift,
  tests: TestedNamespace | undefined,
  { markdown, junit, html, allowIncomplete = false }: Flags,
): Promise<void> {
  const { report } = found;
  if (markdown !== undefined) {
    const { driftMarkdown } = await import("../drift/report/reports.ts");
    await writeOutput(markdown, driftMarkdown(report, tests));
  }
  if (junit !== undefined) {
    const { driftJunit } = await import("../drift/report/junit.ts");
    await writeOutput(junit, driftJunit(report, tests, allowIncomplete));
  }
  if (html !== undefined) {
    const [home] = found.meanings;
    if (!home) throw new EngineError("usage", "--html needs a service. Set GATEHOUSE_URL.");
    const { project, stack, service = "", notEvaluated, notes, drifted, unmanaged } = report;
    const { changeSentences } = await import("../drift/report/reports.ts");
    const { actorText } = await import("../service/auditTrail.ts");
    const { tenant } = home.namespace;
    const changed = new Map(
      [...drifted, ...unmanaged.map((object) => ({ ...object, id: `${object.tenant}/${object.id}` }))].map(
        ({ id, by }) => [id, by && actorText(by)],
      ),
    );
    await writeAccessMap(stderr, html, home, {
      title: `Access drift in the namespace ${home.namespace.name}: declared and live access`,
      project,
      stack,
      service,
      notes: [...changeSentences(report), ...notEvaluated, ...notes],
      lastChangeOf: (id) => changed.get(`${tenant}/${id}`),
    });
  }
}
