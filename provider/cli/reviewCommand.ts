import { writeFile } from "node:fs/promises";
import { isIP } from "node:net";
import { type Command, Option } from "commander";
import { EngineError, type EngineName, openStack, type Plan } from "../engine/index.ts";
import { objections } from "../review/review.ts";
import type { ReviewedPlan } from "../review/reviewPlan.ts";
import { colours, progressLine } from "./render.ts";
import { withConnection } from "./withConnection.ts";

/** The exit code of `gatehouse review` where something stands against the change. */
export const OBJECTED = 2;

interface Flags {
  readonly stack?: string;
  readonly engine?: EngineName;
  readonly parallel: string;
  readonly refresh: boolean;
  readonly login: string[];
  readonly from: string[];
  readonly protect: string[];
  readonly allowLockout: boolean;
  readonly soonDays?: string;
  readonly json: boolean;
  readonly markdown?: string;
  readonly html?: string;
}

const collect = (value: string, earlier: string[]): string[] => [...earlier, value];

/** Adds review, which says what `up` would mean for who can reach what. */
export function addReviewCommand(program: Command): void {
  program
    .command("review")
    .description(
      "say what up would mean for who can reach what; exits with 2 where something stands against it: a failing " +
        "policy test, a lock-out, an object declared twice, or what the credential may not do",
    )
    .argument("[folder]", "folder with Pulumi.yaml", ".")
    .option("-s, --stack <name>", "the stack; default PULUMI_STACK or the only one")
    .addOption(new Option("--engine <engine>", "default cli").choices(["cli", "embedded"]))
    .option("--parallel <n>", "objects worked on at once", "16")
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
    .option("--soon-days <n>", "name what expires within so many days (default 14)")
    .option("--json", "print the review as JSON", false)
    .option("--markdown <file>", "write it as a comment for a pull request; - for the standard output")
    .option("--html <file>", "write the access map, one HTML file")
    .action(review);
}

async function review(folder: string, flags: Flags): Promise<void> {
  const { allowLockout, json, markdown, html } = flags;
  const c = colours(process.stdout, process.env);
  const plan = await preview(folder, flags);
  const reviewed = await reviewedBy(folder, plan, flags);
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

/** What `up` would do, each resource whole. What the engine says on its way goes beside the review. */
async function preview(folder: string, { stack, engine, parallel, refresh }: Flags): Promise<Plan> {
  const c = colours(process.stderr, process.env);
  const opened = await openStack({
    folder,
    parallel: positive("--parallel", parallel),
    onEvent: (event) => {
      const line = event.kind === "diagnostic" || event.kind === "phase" ? progressLine(c, event) : undefined;
      if (line !== undefined) process.stderr.write(`${line}\n`);
    },
    ...(stack === undefined ? {} : { stack }),
    ...(engine === undefined ? {} : { engine }),
  });
  return opened.preview({ refresh, values: true });
}

async function reviewedBy(folder: string, plan: Plan, flags: Flags): Promise<ReviewedPlan> {
  const { login: logins, from: addresses, protect, soonDays } = flags;
  for (const address of addresses) {
    if (isIP(address) === 0) throw new EngineError("usage", `--from is an IP address, not ${address}.`);
  }
  const { reviewPlan } = await import("../review/reviewPlan.ts");
  const days = soonDays === undefined ? {} : { soonDays: positive("--soon-days", soonDays) };
  return withConnection((connection) =>
    reviewPlan(connection, plan, { folder, logins, addresses, protect, ...days }),
  );
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

function positive(flag: string, text: string): number {
  const number = Number(text);
  if (Number.isInteger(number) && number > 0) return number;
  throw new EngineError("usage", `${flag} is a positive whole number, not ${text}.`);
}
