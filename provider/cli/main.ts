import { Command } from "commander";
import { EngineError } from "../engine/index.ts";
import { addRunCommands } from "./runCommands.ts";
import { addTestCommand } from "./testCommand.ts";

const program = new Command("gatehouse").description("Access policy as code").showHelpAfterError();
addRunCommands(program);
addTestCommand(program);

try {
  await program.parseAsync();
} catch (error) {
  if (!(error instanceof EngineError)) throw error;
  process.stderr.write(`error: ${error.message}\n`);
  process.exitCode = 1;
}
