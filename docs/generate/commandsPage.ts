import { type Command, Help } from "commander";
import { newProgram as newAgent } from "../../agent/main.ts";
import { newProgram } from "../../provider/cli/main.ts";
import { newProgram as newServer } from "../../server/main.ts";

const WIDTH = 100;

/** Returns the pages of the three commands, by file name: the help of each command with its examples. */
export async function commandPages(note: string): Promise<Record<string, string>> {
  // The library with the types of flags exports the same class with another type.
  const gatehouse: unknown = await newProgram([], process, () => async () => {});
  const programs = [gatehouse as Command, newServer(process), newAgent()];
  return Object.fromEntries(
    programs.map((program) => [`reference/${program.name()}.md`, commandPage(note, program)]),
  );
}

function commandPage(note: string, program: Command): string {
  const sections = commandsOf(program, program.name()).map(
    ([name, command]) => `## ${name}\n\n\`\`\`text\n${helpOf(command)}\n\`\`\``,
  );
  const head = `# ${program.name()}\n\nThe commands of \`${program.name()}\`, with the output of \`--help\`.`;
  return [note, head, ...sections].join("\n\n");
}

/** Returns a command and all its subcommands, each with its full name. */
function commandsOf(command: Command, name: string): [name: string, command: Command][] {
  const children = new Help().visibleCommands(command).filter((child) => child.name() !== "help");
  return [[name, command], ...children.flatMap((child) => commandsOf(child, `${name} ${child.name()}`))];
}

/** Returns the help of a command with its examples, but without the line that refers to the documentation. */
function helpOf(command: Command): string {
  let text = "";
  command.configureOutput({
    writeOut: (part) => {
      text += part;
    },
    getOutHelpWidth: () => WIDTH,
  });
  command.outputHelp();
  return text.replace(/\nDocumentation: .*\n/, "").trim();
}
