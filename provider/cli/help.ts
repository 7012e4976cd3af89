import type { CommandUnknownOpts } from "@commander-js/extra-typings";
import { addHelpEnd, type HelpEnd } from "@gatehouse-access/sdk/errors";

/** Headings of the command groups in the output of `gatehouse help`. */
type Group = "Apply a program:" | "Review access:" | "Operate a fleet:" | "Set up:";

interface CommandHelp extends HelpEnd {
  /** Summary of the command in one sentence, for the list of commands. */
  readonly summary: string;
  /** Further sentences for the help of the command. */
  readonly description?: string;
  readonly group?: Group;
}

/** Adds the help of a command. The help ends with examples and a link to the documentation. */
export function addHelp<C extends CommandUnknownOpts>(
  command: C,
  { summary, description = "", group, ...end }: CommandHelp,
): C {
  if (group !== undefined) command.helpGroup(group);
  command.summary(summary).description(`${summary} ${description}`.trim());
  return addHelpEnd(command, end);
}
