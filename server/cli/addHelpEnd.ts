import { type HelpEnd, helpEnd } from "@gatehouse-access/sdk/errors";
import type { Command } from "commander";

/** Adds examples and a link to the documentation page to the end of a command's help. */
export const addHelpEnd = (command: Command, end: HelpEnd): Command =>
  command.addHelpText("after", helpEnd(end));
