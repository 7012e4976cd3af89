import { type Command, Option } from "commander";
import { EngineError } from "../engine/index.ts";
import type { PlannedWork } from "../plan/terraform/plannedWork.ts";
import type { Allowed } from "../review/report/sections.ts";
import type { ReviewedPlan, ReviewOptions } from "../review/reviewPlan.ts";
import {
  addStackFlags,
  addTerraformFlag,
  allowUnseenOption,
  collect,
  createOption,
  positive,
  type StackFlags,
  type TerraformFlags,
} from "./flags.ts";
import { type ActionOf, BLOCKED, type Io, type Outcome, type Output } from "./outcome.ts";
import { readTerraform, requireSameWork, saveReviewed } from "./planFiles.ts";
import { colors, writeAccessMap } from "./render.ts";
import type { RevisionPlans } from "./revisionPlans.ts";
import {
  addWithStackFlag,
  openForReview,
  otherResources,
  type WithStackFlags,
  withConnection,
} from "./service.ts";
import { writeOutput } from "./writeOutput.ts";

interface Flags extends StackFlags, WithStackFlags, TerraformFlags, Allowed {
  readonly create: boolean;
  readonly refresh: boolean;
  readonly base?: string;
  readonly head?: string;
  readonly login: string[];
  readonly from: string[];
  readonly protect: string[];
  readonly soonDays?: number;
  readonly json: boolean;
  readonly markdown?: string;
  readonly html?: string;
  readonly save?: string;
  readonly sameAs?: string;
}

export function addReviewCommand(program: Command, action: ActionOf): void {
  const command = addWithStackFlag(addStackFlags(program.command("review")));
  addTerraformFlag(command, "review this plan of Terraform or OpenTofu instead of a Pulumi program", [
    "stack",
    "engine",
    "create",
    "base",
    "head",
  ])
    .description(
      "say what up would mean for who can reach what; exits with 2 where something stands against it: a failing " +
        "policy test, a lock-out, an object declared twice, a finding that the change brings, what the service would " +
        "refuse, access by what is in no program, or anything that could not be looked at",
    )
    .addOption(createOption().conflicts(["base", "head"]))
    .option("--no-refresh", "trust the state instead of reading the real objects first")
    .option(
      "--base <revision>",
      "compare with the program as it is in this git revision, instead of with what is live: what the change itself " +
        "would mean, whatever drift or changes not applied yet there are besides",
    )
    .option(
      "--head <revision>",
      "with --base: the git revision to review; default the working folder as it is",
    )
    .option("--login <name>", "evaluate access for this login name too; may be repeated", collect, [])
    .option("--from <address>", "evaluate access from this address too; may be repeated", collect, [])
    .option(
      "--protect <group>",
      "devices that somebody must still reach: a tag or a name, also as tag:… and name:…; may be repeated",
      collect,
      [],
    )
    .option("--allow-lockout", "do not object to lock-outs", false)
    .option("--allow-unmanaged", "do not object to keys and rules in no program that widen access", false)
    .option(
      "--allow-missing-rights",
      "do not object to what this credential may not do: another one applies the plan",
      false,
    )
    .option("--allow-findings", "do not block on findings of the lint that the change brings", false)
    .addOption(allowUnseenOption())
    .option("--soon-days <n>", "name what expires within so many days (default 14)", positive("--soon-days"))
    .option("--json", "print the review as JSON", false)
    .option("--markdown <file>", "write it as a comment for a pull request; - for the standard output")
    .option("--html <file>", "write the access map, one HTML file")
    .addOption(
      new Option(
        "--save <file>",
        "write the plan, if nothing stands against it, for up --plan; encrypted as the state is. With --terraform: " +
          "what tells it from other plans, for --same-as",
      ).conflicts(["base", "head"]),
    )
    .option(
      "--same-as <file>",
      "with --terraform: exit with 2 unless this plan does what the one did of which --save wrote this file",
    )
    .action(action(review));
}

async function review(io: Io, folder: string, flags: Flags): Promise<Outcome> {
  if (flags.sameAs !== undefined && flags.terraform === undefined) {
    throw new EngineError(
      "usage",
      "--same-as is for plans of Terraform and OpenTofu; a Pulumi program has up --plan.",
    );
  }
  // Loaded here: the other commands need none of it, and it would slow the start of them all.
  const { accessInquiry } = await import("../access/inquiry.ts");
  const { logins, addresses } = accessInquiry({ login: flags.login, from: flags.from }, "text");
  return withPlans(io, folder, flags, async (plans) => {
    const { plan, stack, work, configuration, io: onService, ...planned } = plans;
    if (work && flags.sameAs !== undefined) await requireSameWork(flags.sameAs, work());
    const { reviewPlan } = await import("../review/reviewPlan.ts");
    const { protect, soonDays } = flags;
    const options: ReviewOptions = { ...planned, logins, addresses, protect, soonDays };
    const reviewed = await withConnection(
      onService,
      configuration,
      async (connection) => {
        const { ManagedObjects, readExceptions } = await import("../estate/coverage.ts");
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
          io.stderr.write(`${flags.save} was not written: something stands against this change\n`);
          return;
        }
        if (stack) await saveReviewed(flags.save, stack, plan, reviewed, flags.refresh);
        if (work) await writeOutput(flags.save, `${JSON.stringify(work(), null, 2)}\n`);
        io.stderr.write(
          stack
            ? `The plan is in ${flags.save}; up --plan does it as long as it is what was reviewed\n`
            : `${flags.save} tells this plan from others; review --same-as ${flags.save} compares a later one with it\n`,
        );
      },
    };
  });
}

/** The plan that is reviewed; without a baseline it is compared with the live namespace. */
type Planned = Omit<RevisionPlans, "baseline" | "stack"> &
  Partial<RevisionPlans> &
  Pick<ReviewOptions, "unseen"> & { readonly work?: () => PlannedWork };

/** Does work with a plan of what `up` would do, and with `--base`, also with the plan that it is compared with. */
async function withPlans<T>(
  io: Io,
  folder: string,
  { base, head, create, terraform, ...flags }: Flags,
  work: (planned: Planned) => Promise<T>,
): Promise<T> {
  if (terraform !== undefined) {
    const { plan, settings, unseen, work: planned } = await readTerraform(io, folder, terraform);
    return work({ io, plan, configuration: settings, unseen, folder, work: planned });
  }
  if (base !== undefined) {
    const { revisionPlans, withTemporaryFolder } = await import("./revisionPlans.ts");
    return withTemporaryFolder(io.env, async (temporary) =>
      work(await revisionPlans(io, folder, { ...flags, base, head }, temporary)),
    );
  }
  if (head !== undefined) {
    throw new EngineError("usage", "--head is the revision to compare with --base, which is missing.");
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
  const { PLAIN, revisionsInWords, revisionsSentence } = await import("../review/report/sections.ts");
  const [home] = namespaces;
  if (!home) throw new EngineError("review", "there is no namespace to draw.");
  const { project, stack, service, revisions, unseen, unknown } = review;
  const gaps = [...unseen, ...unknown, ...home.review.unseen, ...home.review.unknown];
  await writeAccessMap(stderr, file, home, {
    title: `Access to ${home.review.name}${revisions ? `: ${revisionsInWords(revisions, PLAIN)}` : ""}`,
    ...{ project, stack, service },
    notes: [...(revisions ? [revisionsSentence(revisions, PLAIN)] : []), ...gaps],
  });
}
