import { type Command, Option } from "@commander-js/extra-typings";
import { EngineError } from "../engine/index.ts";
import type { PlannedWork } from "../plan/terraform/plannedWork.ts";
import type { ReviewedPlan, ReviewOptions } from "../review/reviewPlan.ts";
import { type ActionOf, BLOCKED, type CommandOutput, type Io, type Output } from "./commandOutput.ts";
import {
  addStackFlags,
  allowIncompleteOption,
  collect,
  createOption,
  type FlagsOf,
  positive,
  requireEnforcedExpiryOption,
  terraformOption,
  withExpiryFlag,
  withStackOption,
} from "./flags.ts";
import { addHelp } from "./help.ts";
import { readTerraform, requireSameWork, saveReviewed } from "./planFiles.ts";
import { colors, writeAccessMap } from "./render.ts";
import type { RevisionPlans } from "./revisionPlans.ts";
import { openForReview, otherResources, withConnection } from "./service.ts";
import { writeOutput } from "./writeOutput.ts";

type Flags = FlagsOf<typeof reviewCommand>;

const reviewCommand = (program: Command) =>
  addStackFlags(program.command("review"))
    .addOption(withStackOption())
    .addOption(
      terraformOption("Review this plan of Terraform or OpenTofu instead of a Pulumi program", [
        "stack",
        "engine",
        "create",
        "base",
        "head",
      ]),
    )
    .addOption(createOption().conflicts(["base", "head"]))
    .option("--no-refresh", "Use the stored state; do not read the live objects first")
    .option(
      "--base <revision>",
      "Compare with the program in this git revision instead of the live service. The review then excludes drift " +
        "and changes that are not applied yet",
    )
    .option("--head <revision>", "With --base: the git revision to review (default: the working folder)")
    .option("--login <name>", "Also evaluate access for this login; repeatable", collect, [])
    .option("--from <address>", "Also evaluate access from this address; repeatable", collect, [])
    .option(
      "--protect <group>",
      "Block if the change makes a device with this tag or name unreachable. Use the prefix tag: or name: to match only one kind; repeatable",
      collect,
      [],
    )
    .option("--allow-lockout", "Do not block on lockouts", false)
    .option("--allow-unmanaged", "Do not block on unmanaged keys and rules that widen access", false)
    .option(
      "--allow-missing-permissions",
      "Do not block on missing permissions of this credential, because another credential applies the plan",
      false,
    )
    .option("--allow-findings", "Do not block on new lint findings", false)
    .addOption(allowIncompleteOption())
    .addOption(requireEnforcedExpiryOption().conflicts("terraform"))
    .option(
      "--expires-within <n>",
      "Report API keys and invitations that expire within this number of days (default: 14)",
      positive("--expires-within"),
    )
    .option("--json", "Print the review as JSON", false)
    .option(
      "--markdown <file>",
      "Write the review as Markdown, for a comment on a pull request; - for the standard output",
    )
    .option("--html <file>", "Write the access map as one HTML file")
    .addOption(
      new Option(
        "--save <file>",
        "Write the plan for up --plan, encrypted like the state. With --terraform: write the changes of the plan for " +
          "--same-as. If there are blocking findings, no file is written",
      ).conflicts(["base", "head"]),
    )
    .option(
      "--same-as <file>",
      "With --terraform: exit with code 2 unless the plan matches the plan that --save wrote",
    );

export function addReviewCommand(program: Command, action: ActionOf): void {
  addHelp(reviewCommand(program).action(action(review)), {
    group: "Review access:",
    summary: "Show who gains or loses access if the program is applied.",
    description:
      "Exits 2 on blocking findings: a failed policy test, a lockout, an object declared twice, a new finding of the " +
      "lint, a change that the service would reject, access by unmanaged objects, or a part that could not be checked.",
    examples: [
      "gatehouse review policy --stack prod",
      "gatehouse review policy --stack prod --base main --markdown comment.md",
      "gatehouse review policy --stack prod --save reviewed.plan",
    ],
    page: "docs/guides/review.md",
  });
}

async function review(given: Io, folder: string, flags: Flags): Promise<CommandOutput> {
  const io = withExpiryFlag(given, flags);
  if (flags.sameAs !== undefined && flags.terraform === undefined) {
    throw new EngineError("usage", "--same-as needs --terraform. For a Pulumi program, use up --plan.");
  }
  // Imported here because other commands do not need this module, and the import would slow down their start.
  const { accessInquiry } = await import("../access/inquiry.ts");
  const { logins, addresses } = accessInquiry({ login: flags.login, from: flags.from }, "text");
  return withPlans(io, folder, flags, async (plans) => {
    const { plan, stack, work, configuration, io: onService, ...planned } = plans;
    if (work && flags.sameAs !== undefined) await requireSameWork(flags.sameAs, work());
    const { reviewPlan } = await import("../review/reviewPlan.ts");
    const { protect, expiresWithin } = flags;
    const options: ReviewOptions = { ...planned, logins, addresses, protect, expiresWithin };
    const reviewed = await withConnection(
      onService,
      configuration,
      async (connection) => {
        const { ManagedObjects, readExceptions } = await import("../namespace/coverage.ts");
        const others = await otherResources(onService, folder, flags, connection);
        const elsewhere = { managed: new ManagedObjects(others), exceptions: await readExceptions(folder) };
        return reviewPlan(connection, plan, { ...options, elsewhere });
      },
      flags.terraform === undefined ? "pulumi" : "terraform",
    );
    await writeReports(io, reviewed, flags);
    const { objections } = await import("../review/report/sections.ts");
    const isBlocked = objections(reviewed.review, flags).length > 0;
    const text = async () => {
      const { reviewText } = await import("../review/report/text.ts");
      return reviewText(colors(io.stdout, io.env), reviewed.review, flags);
    };
    return {
      result: reviewed.review,
      ...(flags.markdown !== "-" && { text }),
      exitCode: isBlocked ? BLOCKED : 0,
      async afterPrint() {
        if (flags.save === undefined) return;
        if (isBlocked) {
          io.stderr.write(`Did not write ${flags.save}: the review has blocking findings.\n`);
          return;
        }
        if (stack) await saveReviewed(flags.save, stack, plan, reviewed, flags.refresh);
        if (work) await writeOutput(flags.save, `${JSON.stringify(work(), null, 2)}\n`);
        io.stderr.write(
          stack
            ? `Wrote the plan to ${flags.save}. To apply the plan: gatehouse up --plan ${flags.save}\n`
            : `Wrote the changes of the plan to ${flags.save}. To compare a later plan: gatehouse review --same-as ${flags.save}\n`,
        );
      },
    };
  });
}

/** The plan to review. Without a baseline, the review compares the plan with the live namespace. */
type Planned = Omit<RevisionPlans, "baseline" | "stack"> &
  Partial<RevisionPlans> &
  Pick<ReviewOptions, "notEvaluated" | "unknown"> & { readonly work?: () => PlannedWork };

/** Calls `work` with the plan to review, and with the plan of the base revision if `--base` is set. */
async function withPlans<T>(
  io: Io,
  folder: string,
  { base, head, create, terraform, ...flags }: Flags,
  work: (planned: Planned) => Promise<T>,
): Promise<T> {
  if (terraform !== undefined) {
    const read = await readTerraform(io, folder, terraform);
    const { plan, settings: configuration, notEvaluated, notes: unknown, work: planned } = read;
    return work({ io, plan, configuration, notEvaluated, unknown, folder, work: planned });
  }
  if (base !== undefined) {
    const { revisionPlans, withTemporaryFolder } = await import("./revisionPlans.ts");
    return withTemporaryFolder(io.env, async (temporary) =>
      work(await revisionPlans(io, folder, { ...flags, base, head }, temporary)),
    );
  }
  if (head !== undefined) {
    throw new EngineError("usage", "--head needs --base. Add --base <revision>.");
  }
  const opened = await openForReview(io, folder, flags);
  const plan = await opened.stack.preview({ refresh: flags.refresh, values: true, create });
  return work({ ...opened, plan, configuration: await opened.stack.config(), folder });
}

async function writeReports(
  { stdout, stderr }: Io,
  reviewed: ReviewedPlan,
  { markdown, html, ...allowed }: Flags,
): Promise<void> {
  if (html !== undefined) await writeMap(stderr, html, reviewed);
  if (markdown === undefined) return;
  const { reviewMarkdown } = await import("../review/report/markdown.ts");
  const text = reviewMarkdown(reviewed.review, allowed);
  if (markdown === "-") stdout.write(text);
  else await writeOutput(markdown, text);
}

async function writeMap(stderr: Output, file: string, { review, namespaces }: ReviewedPlan): Promise<void> {
  const { revisionsInWords, revisionsSentence } = await import("../review/report/sections.ts");
  const { PLAIN } = await import("../style.ts");
  const [home] = namespaces;
  if (!home)
    throw new EngineError("review", "The plan has no namespace for the access map. Set GATEHOUSE_TENANT.");
  const { project, stack, service, revisions, notEvaluated, unknown } = review;
  const gaps = [...notEvaluated, ...unknown, ...home.review.notEvaluated, ...home.review.unknown];
  await writeAccessMap(stderr, file, home, {
    title: `Access in the namespace ${home.review.name}${revisions ? `: ${revisionsInWords(revisions, PLAIN)}` : ""}`,
    project,
    stack,
    service,
    notes: [...(revisions ? [revisionsSentence(revisions, PLAIN)] : []), ...gaps],
  });
}
