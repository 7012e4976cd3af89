import { type HelpEnd, helpEnd } from "@gatehouse-access/sdk/errors";
import type { Command } from "commander";

/** Ends the help of a command with examples and the page with more. */
export const addHelpEnd = (command: Command, end: HelpEnd): Command =>
  command.addHelpText("after", helpEnd(end));
