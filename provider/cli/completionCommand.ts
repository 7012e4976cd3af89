import { Argument, type Command, type CommandUnknownOpts, type Option } from "@commander-js/extra-typings";
import type { ActionOf } from "./commandOutput.ts";
import { addHelp } from "./help.ts";

const SHELLS = ["bash", "zsh", "fish"] as const;
type Shell = (typeof SHELLS)[number];

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
    page: "docs/guides/configuration.md",
  });
}

/** The completions of a value: fixed words, files, folders, stacks of the project in the working folder, or none. */
type Values = readonly string[] | "files" | "folders" | "stacks" | "none";

/** A flag of a command. */
interface Flag {
  /** The long name, such as `--stack`, and the short name if there is one. */
  readonly names: readonly string[];
  readonly about: string;
  /** The completions of the flag's value; undefined if the flag takes no value. */
  readonly values: Values | undefined;
}

/** The completions of a command. */
interface Completed {
  /**
   * The names of the command and its parent commands, such as `pulumi install`. The name of the program is omitted, so
   * the path of the program itself is empty.
   */
  readonly path: string;
  readonly subcommands: readonly { readonly name: string; readonly about: string }[];
  readonly flags: readonly Flag[];
  /** The completions of the first argument of the command. */
  readonly argument: Values;
}

/** Returns the script that completes the command line of a program in a shell. */
function completionScript(shell: Shell, program: Command): string {
  const commands = completed(program, "");
  const name = program.name();
  if (shell === "fish") return fishScript(name, commands);
  const bash = bashScript(name, commands);
  // Zsh can run completion functions of bash. These functions must not use special variables of Zsh, such as `path` and
  // `words`.
  return shell === "bash" ? bash : `autoload -U +X bashcompinit && bashcompinit\n${bash}`;
}

function completed(command: CommandUnknownOpts, path: string): Completed[] {
  const help = command.createHelp();
  const children = help.visibleCommands(command);
  const own: Completed = {
    path,
    subcommands: children.map((child) => ({ name: child.name(), about: help.subcommandDescription(child) })),
    flags: help.visibleOptions(command).map(flagOf),
    argument: command.registeredArguments[0] ? valuesOf(command.registeredArguments[0]) : "none",
  };
  const below = children.filter((child) => command.commands.includes(child));
  return [own, ...below.flatMap((child) => completed(child, `${path} ${child.name()}`.trim()))];
}

const flagOf = (option: Option): Flag => ({
  names: [option.long, option.short].filter((name) => name !== undefined),
  about: option.description,
  values: option.required || option.optional ? valuesOf(option) : undefined,
});

/** Returns the completions of a value. They come from its list of choices, or from its placeholder in the help. */
function valuesOf(value: Option | Argument): Values {
  if (value.argChoices) return value.argChoices;
  const isStack = "long" in value && value.long === "--stack";
  if (isStack) return "stacks";
  const placeholder = "flags" in value ? value.flags : value.name();
  if (/\bfolder\b/.test(placeholder)) return "folders";
  return /\bfile\b/.test(placeholder) ? "files" : "none";
}

const bashWords = (words: readonly string[]) => `choices='${words.join(" ")}'`;

function bashValues(values: Values): string {
  if (values === "files") return "kind=-f";
  if (values === "folders") return "kind=-d";
  if (values === "stacks") return "choices=$stacks";
  return values === "none" ? ":" : bashWords(values);
}

function bashScript(name: string, commands: readonly Completed[]): string {
  const paths = commands.filter(({ path }) => path !== "").map(({ path }) => `'${path}'`);
  const flagCases = commands.flatMap(({ path, flags }) =>
    flags.flatMap(({ names, values }) =>
      values === undefined
        ? []
        : [`    ${names.map((flag) => `'${path}:${flag}'`).join("|")}) ${bashValues(values)} ;;`],
    ),
  );
  const wordCases = commands.map(({ path, subcommands, flags, argument }) => {
    const words = [...subcommands.map((child) => child.name), ...flags.flatMap(({ names }) => names)];
    const values = typeof argument === "string" ? bashValues(argument) : "";
    const extra = typeof argument === "string" ? [] : argument;
    return `      '${path}') ${[bashWords([...extra, ...words]), values].filter((part) => part !== "" && part !== ":").join("; ")} ;;`;
  });
  return `_${name}() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]}
  local command='' choices='' kind='' stacks='' word index
  # Stacks with a settings file in the working folder. compgen expands its words, so other file names are ignored.
  stacks=$(ls | sed -n 's/^Pulumi\\.\\([A-Za-z0-9_.-]*\\)\\.yaml$/\\1/p')
  # Bash splits --flag=value at the equals sign.
  if [[ $current == '=' ]]; then current=''
  elif [[ $previous == '=' ]]; then previous=\${COMP_WORDS[COMP_CWORD-2]}
  fi
  for ((index = 1; index < COMP_CWORD; index++)); do
    word=\${COMP_WORDS[index]}
    case "\${command:+$command }$word" in
      ${paths.join("|")}) command=\${command:+$command }$word ;;
    esac
  done
  case "$command:$previous" in
${flagCases.join("\n")}
    *) case "$command" in
${wordCases.join("\n")}
    esac ;;
  esac
  COMPREPLY=()
  if [[ -n $kind && $current != -* ]]; then
    compopt -o filenames 2>/dev/null
    while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen $kind -- "$current")
  fi
  while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W "$choices" -- "$current")
}
complete -F _${name} ${name}
`;
}

const fishText = (text: string) => `'${text.replaceAll(/['\\]/g, "\\$&")}'`;

function fishValues(values: Values): string {
  if (values === "files") return " -r -F";
  if (values === "folders") return " -x -a '(__fish_complete_directories (commandline -ct))'";
  if (values === "stacks")
    return ' -x -a \'(string replace -rf "^Pulumi\\.(.+)\\.yaml\\$" "\\$1" -- Pulumi.*.yaml)\'';
  return values === "none" ? " -x" : ` -x -a ${fishText(values.join(" "))}`;
}

function fishScript(name: string, commands: readonly Completed[]): string {
  const paths = commands.filter(({ path }) => path !== "").map(({ path }) => fishText(path));
  const lines = commands.flatMap(({ path, subcommands, flags, argument }) => {
    const head = `complete -c ${name} -n ${fishText(`__${name}_at ${fishText(path)}`)}`;
    return [
      ...subcommands.map((child) => `${head} -a ${child.name} -d ${fishText(child.about)}`),
      ...flags.map(({ names, about, values }) => {
        const flagNames = names.map((flag) =>
          flag.startsWith("--") ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`,
        );
        return `${head} ${flagNames.join(" ")} -d ${fishText(about)}${values === undefined ? "" : fishValues(values)}`;
      }),
      ...(argument === "none"
        ? []
        : [`${head}${fishValues(argument).replace(" -r", "").replace(" -x", "")}`]),
    ];
  });
  return `function __${name}_at
  set -l path
  for word in (commandline -opc)[2..]
    contains -- "$path$word" ${paths.join(" ")}; and set path "$path$word "
  end
  test (string trim -- "$path") = $argv[1]
end
complete -c ${name} -f
${lines.join("\n")}
`;
}
