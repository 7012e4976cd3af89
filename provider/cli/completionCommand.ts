import { Argument, type Command } from "commander";
import { completionScript, SHELLS, type Shell } from "./completionScripts.ts";
import { addHelp } from "./help.ts";
import type { ActionOf } from "./outcome.ts";

/** Adds `gatehouse completion`. The printed script completes the commands of `program`. */
export function addCompletionCommand(program: Command, action: ActionOf): void {
  const command = program
    .command("completion")
    .addArgument(new Argument("<shell>", "Shell that runs the script").choices(SHELLS))
    .action(
      action(async (_io, shell: Shell) => {
        const script = completionScript(shell, program);
        return { text: () => script };
      }),
    );
  addHelp(command, {
    group: "Set up:",
    summary: "Print the completion script of a shell.",
    description: "The script completes commands, flags, values of flags, files and stacks.",
    examples: [
      "gatehouse completion bash > ~/.local/share/bash-completion/completions/gatehouse",
      "gatehouse completion zsh > ~/.gatehouse.zsh    # in ~/.zshrc, after compinit: source ~/.gatehouse.zsh",
      "gatehouse completion fish > ~/.config/fish/completions/gatehouse.fish",
    ],
    page: "README.md",
  });
}
