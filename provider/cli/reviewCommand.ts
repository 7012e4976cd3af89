import { writeFile } from "node:fs/promises";
import { type Command, Option } from "commander";
import { EngineError, type Plan } from "../engine/index.ts";
import { objections } from "../review/review.ts";
import type { ReviewedPlan, ReviewOptions } from "../review/reviewPlan.ts";
import { addStackFlags, collect, createOption, positive, type StackFlags } from "./flags.ts";
import { openForReview } from "./openForReview.ts";
import { colours } from "./render.ts";
import { saveReviewed } from "./reviewedPlan.ts";
import type { RevisionPlans } from "./revisionPlans.ts";
import { withConnection } from "./withConnection.ts";

/** The exit code of `gatehouse review` where something stands against the change. */
export const OBJECTED = 2;

interface Flags extends StackFlags {
  readonly create: boolean;
  readonly refresh: boolean;
  readonly base?: string;
  readonly head?: string;
  readonly login: string[];
  readonly from: string[];
  readonly protect: string[];
  readonly allowLockout: boolean;
  readonly soonDays?: number;
  readonly json: boolean;
  readonly markdown?: string;
  readonly html?: string;
  readonly save?: string;
}

/** Adds review, which says what `up` would mean for who can reach what. */
export function addReviewCommand(program: Command): void {
  addStackFlags(program.command("review"))
    .description(
      "say what up would mean for who can reach what; exits with 2 where something stands against it: a failing " +
        "policy test, a lock-out, an object declared twice, or what the credential may not do",
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
    .option("--soon-days <n>", "name what expires within so many days (default 14)", positive("--soon-days"))
    .option("--json", "print the review as JSON", false)
    .option("--markdown <file>", "write it as a comment for a pull request; - for the standard output")
    .option("--html <file>", "write the access map, one HTML file")
    .addOption(
      new Option(
        "--save <file>",
        "write the plan, if nothing stands against it, for up --plan; encrypted as the state is",
      ).conflicts(["base", "head"]),
    )
    .action(review);
}

async function review(folder: string, flags: Flags): Promise<void> {
  const { allowLockout, json, markdown, html } = flags;
  const c = colours(process.stdout, process.env);
  // Loaded here: the other commands need none of it, and it would slow the start of them all.
  const { accessQuery } = await import("../review/accessQuery.ts");
  const { logins, addresses } = accessQuery({ login: flags.login, from: flags.from }, "text");
  const { plan, stack, configuration, ...planned } = await plansOf(folder, flags);
  const reviewed = await reviewedBy(plan, configuration, {
    ...{ ...planned, logins, addresses, protect: flags.protect },
    ...(flags.soonDays !== undefined && { soonDays: flags.soonDays }),
  });
  const { review } = reviewed;
  if (html !== undefined) await writeMap(html, reviewed);
  if (markdown !== undefined) {
    const { reviewMarkdown } = await import("../review/markdown.ts");
    await put(markdown, reviewMarkdown(review, { allowLockout }));
  }
  if (json) process.stdout.write(`${JSON.stringify(review, null, 2)}\n`);
  else if (markdown !== "-") {
    const { reviewText } = await import("../review/text.ts");
    process.stdout.write(`${reviewText(c, review, { allowLockout })}\n`);
  }
  const code = objections(review, { allowLockout }).length > 0 ? OBJECTED : 0;
  if (flags.save !== undefined) {
    if (code === 0) await saveReviewed(flags.save, stack, { plan, reviewed, refresh: flags.refresh });
    process.stderr.write(
      code === 0
        ? `The plan is in ${flags.save}; up --plan does it as long as it is what was reviewed\n`
        : `${flags.save} was not written: something stands against this change\n`,
    );
  }
  // What a policy test started and did not end would keep the process.
  process.stdout.write("", () => process.exit(code));
}

/** What `up` would do, each resource whole; and with `--base`, what that is compared with. */
async function plansOf(
  folder: string,
  { base, head, create, ...flags }: Flags,
): Promise<Omit<RevisionPlans, "compared"> & Partial<RevisionPlans>> {
  if (base !== undefined) {
    const { revisionPlans } = await import("./revisionPlans.ts");
    return revisionPlans(folder, { ...flags, base, ...(head !== undefined && { head }) });
  }
  if (head !== undefined) {
    throw new EngineError("usage", "--head is the revision to compare with --base, which is missing.");
  }
  const stack = await openForReview(folder, flags);
  const plan = await stack.preview({ refresh: flags.refresh, values: true, create });
  return { plan, stack, configuration: await stack.config(), folder };
}

async function reviewedBy(
  plan: Plan,
  configuration: ReadonlyMap<string, string>,
  options: ReviewOptions,
): Promise<ReviewedPlan> {
  const { reviewPlan } = await import("../review/reviewPlan.ts");
  return withConnection((connection) => reviewPlan(connection, plan, options), configuration);
}

async function writeMap(file: string, { review, namespaces }: ReviewedPlan): Promise<void> {
  const { accessMapData, accessMapHtml } = await import("../review/map/index.ts");
  const { PLAIN, revisionsSentence, revisionsTitle } = await import("../review/sentences.ts");
  const [home] = namespaces;
  if (!home) throw new EngineError("review", "there is no namespace to draw.");
  const { project, stack, service, revisions, unknown } = review;
  const data = accessMapData(home.before, home.after, {
    title: `Access to ${home.review.name}${revisions ? revisionsTitle(revisions, PLAIN) : ""}`,
    ...{ project, stack, service, when: new Date().toISOString() },
    notes: [...(revisions ? [revisionsSentence(revisions, PLAIN)] : []), ...unknown, ...home.review.unknown],
  });
  await writeFile(file, accessMapHtml(data));
  process.stderr.write(`The access map is in ${file}\n`);
}

async function put(file: string, text: string): Promise<void> {
  if (file === "-") process.stdout.write(text);
  else await writeFile(file, text);
}
