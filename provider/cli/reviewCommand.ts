import { writeFile } from "node:fs/promises";
import type { Command } from "commander";
import { EngineError, openStack, type Plan, type Stack } from "../engine/index.ts";
import { objections } from "../review/review.ts";
import type { ReviewedPlan, ReviewOptions } from "../review/reviewPlan.ts";
import { addStackFlags, collect, positive, type StackFlags, stackOptionsOf } from "./flags.ts";
import { colours, progressLine } from "./render.ts";
import { withConnection } from "./withConnection.ts";

/** The exit code of `gatehouse review` where something stands against the change. */
export const OBJECTED = 2;

interface Flags extends StackFlags {
  readonly refresh: boolean;
  readonly login: string[];
  readonly from: string[];
  readonly protect: string[];
  readonly allowLockout: boolean;
  readonly soonDays?: number;
  readonly json: boolean;
  readonly markdown?: string;
  readonly html?: string;
}

/** Adds review, which says what `up` would mean for who can reach what. */
export function addReviewCommand(program: Command): void {
  addStackFlags(program.command("review"))
    .description(
      "say what up would mean for who can reach what; exits with 2 where something stands against it: a failing " +
        "policy test, a lock-out, an object declared twice, or what the credential may not do",
    )
    .option("--no-refresh", "trust the state instead of reading the real objects first")
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
    .action(review);
}

async function review(folder: string, flags: Flags): Promise<void> {
  const { allowLockout, json, markdown, html } = flags;
  const c = colours(process.stdout, process.env);
  // Loaded here: the other commands need none of it, and it would slow the start of them all.
  const { accessQuery } = await import("../review/accessQuery.ts");
  const { logins, addresses } = accessQuery({ login: flags.login, from: flags.from }, "text");
  const stack = await open(folder, flags);
  const plan = await stack.preview({ refresh: flags.refresh, values: true });
  const reviewed = await reviewedBy(stack, plan, {
    ...{ folder, logins, addresses, protect: flags.protect },
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
  // What a policy test started and did not end would keep the process.
  process.stdout.write("", () => process.exit(code));
}

/** What the engine says on its way goes beside the review. */
async function open(folder: string, flags: Flags): Promise<Stack> {
  const c = colours(process.stderr, process.env);
  return openStack({
    ...stackOptionsOf(folder, flags),
    onEvent: (event) => {
      const line = event.kind === "diagnostic" || event.kind === "phase" ? progressLine(c, event) : undefined;
      if (line !== undefined) process.stderr.write(`${line}\n`);
    },
  });
}

async function reviewedBy(stack: Stack, plan: Plan, options: ReviewOptions): Promise<ReviewedPlan> {
  const { reviewPlan } = await import("../review/reviewPlan.ts");
  const configuration = await stack.config();
  return withConnection((connection) => reviewPlan(connection, plan, options), configuration);
}

async function writeMap(file: string, { review, namespaces }: ReviewedPlan): Promise<void> {
  const { accessMapData, accessMapHtml } = await import("../review/map/index.ts");
  const [home] = namespaces;
  if (!home) throw new EngineError("review", "there is no namespace to draw.");
  const { project, stack, service, unknown } = review;
  const data = accessMapData(home.before, home.after, {
    title: `Access to ${home.review.name}`,
    ...{ project, stack, service, when: new Date().toISOString() },
    notes: [...unknown, ...home.review.unknown],
  });
  await writeFile(file, accessMapHtml(data));
  process.stderr.write(`The access map is in ${file}\n`);
}

async function put(file: string, text: string): Promise<void> {
  if (file === "-") process.stdout.write(text);
  else await writeFile(file, text);
}
