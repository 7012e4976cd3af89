import { readFileSync } from "node:fs";
import { Command } from "commander";
import { EngineError } from "../engine/index.ts";
import { packageFile } from "../packageFile.ts";
import { addAccessCommand } from "./accessCommand.ts";
import { addReviewCommand } from "./reviewCommand.ts";
import { addRunCommands } from "./runCommands.ts";
import { addTestCommand } from "./testCommand.ts";

const manifest = readFileSync(packageFile("package.json"), "utf8");
const { version } = JSON.parse(manifest) as { version: string };

const program = new Command("gatehouse")
  .description("Access policy as code")
  .version(version)
  .showHelpAfterError();
addRunCommands(program);
addReviewCommand(program);
addAccessCommand(program);
addTestCommand(program);

try {
  await program.parseAsync();
} catch (error) {
  process.stderr.write(`error: ${await messageOf(error)}\n`);
  process.exitCode = 1;
}

/** What to tell people. An error that nobody foresaw goes on, for its stack trace. */
async function messageOf(error: unknown): Promise<string> {
  if (error instanceof EngineError) return error.message;
  // Loaded here: where nothing failed, most commands need no client.
  const { GatehouseError } = await import("@gatehouse-access/sdk");
  const { printable } = await import("../review/accessText.ts");
  if (error instanceof GatehouseError) return printable(error.message);
  throw error;
}
