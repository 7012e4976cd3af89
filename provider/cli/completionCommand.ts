import { Argument, type Command } from "commander";
import { completionScript, SHELLS, type Shell } from "./completionScripts.ts";
import { addHelp } from "./help.ts";
import type { ActionOf } from "./outcome.ts";

/** Adds `gatehouse completion`. The script completes the commands that the program has when the command runs. */
export function addCompletionCommand(program: Command, action: ActionOf): void {
  const command = program
    .command("completion")
    .addArgument(new Argument("<shell>", "Shell to complete commands in").choices(SHELLS))
    .action(
      action(async (_io, shell: Shell) => {
        const script = completionScript(shell, program);
        return { text: () => script };
      }),
    );
  addHelp(command, {
    group: "Set up:",
    summary: "Print the completion script of a shell.",
    description: "It completes commands, flags, their values, files and stacks.",
    examples: [
      "gatehouse completion bash > ~/.local/share/bash-completion/completions/gatehouse",
      "gatehouse completion zsh > ~/.gatehouse.zsh    # in ~/.zshrc, after compinit: source ~/.gatehouse.zsh",
      "gatehouse completion fish > ~/.config/fish/completions/gatehouse.fish",
    ],
    page: "README.md",
  });
}
