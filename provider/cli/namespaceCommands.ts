import type { Command } from "@commander-js/extra-typings";
import type { Namespace } from "../service/listings.ts";
import { byText, printable, tableLines } from "../words.ts";
import type { ActionOf, CommandOutput, Io } from "./commandOutput.ts";
import { addConfigurationFlags, configurationOf, type FlagsOf, FOLDER, JSON_RESULT } from "./flags.ts";
import { addHelp } from "./help.ts";
import { withConnection } from "./service.ts";

/** A namespace, as `gatehouse namespace list --json` prints it. */
interface ListedNamespace {
  /** The id, for GATEHOUSE_TENANT and for the input `tenant` of resources. */
  readonly id: string;
  readonly name: string;
  /** The role of the user. Null for API keys and workloads, and if the service does not return the role. */
  readonly role: string | null;
}

/** Adds `gatehouse namespace` with its subcommands. */
export function addNamespaceCommands(program: Command, action: ActionOf): void {
  const page = "docs/guides/configuration.md";
  const namespaces = program.command("namespace");
  addHelp(namespaces, {
    group: "Operate a fleet:",
    summary: "List namespaces.",
    examples: ["gatehouse namespace list"],
    page,
  });
  addHelp(listCommand(namespaces).action(action(list)), {
    summary: "List the namespaces of the credential, with their ids.",
    notes: `
GATEHOUSE_TENANT and the input "tenant" of resources need the id of a namespace. The
command ignores GATEHOUSE_TENANT, unless GATEHOUSE_OIDC is set.`,
    examples: ["gatehouse namespace list", "gatehouse namespace list --json"],
    page,
  });
}

const listCommand = (namespaces: Command) =>
  addConfigurationFlags(namespaces.command("list"))
    .option("--folder <folder>", `${FOLDER}, for --stack`, ".")
    .option("--json", JSON_RESULT);

async function list(io: Io, flags: FlagsOf<typeof listCommand>): Promise<CommandOutput> {
  const configuration = await configurationOf(io, flags.folder, flags);
  const isSet = (name: string) => Boolean(io.env[name] ?? io.env[`${name}_FILE`]);
  // Users run the command to find the correct value of GATEHOUSE_TENANT, so the command ignores this setting. A
  // workload needs the setting to log in.
  const ignored = isSet("GATEHOUSE_OIDC") || configuration.has("gatehouse:oidc") ? [] : ["GATEHOUSE_TENANT"];
  const env = omitted(io.env, ...ignored, ...ignored.map((name) => `${name}_FILE`));
  const settings = new Map(configuration);
  if (ignored.length > 0) settings.delete("gatehouse:tenant");
  return withConnection({ ...io, env }, settings, async ({ namespaces, client }) => {
    const { userId } = await client.identity();
    const listed = (await namespaces.all())
      .map((namespace) => toListed(namespace, userId))
      .sort((left, right) => byText(left.name, right.name));
    return { result: { namespaces: listed }, text: () => textOf(listed) };
  });
}

const omitted = (env: NodeJS.ProcessEnv, ...names: readonly string[]): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !names.includes(name)));

const toListed = ({ tenantId, name, members }: Namespace, userId: string | undefined): ListedNamespace => ({
  id: tenantId,
  name,
  role: members.find(({ id }) => id === userId)?.role ?? null,
});

function textOf(namespaces: readonly ListedNamespace[]): string {
  if (namespaces.length === 0)
    return "The user is not a member of any namespace. To create one, run: gatehouse up --create-namespace <name>";
  const rows = namespaces.map(({ name, id, role }) => [name, id, role ?? ""].map(printable));
  return [...tableLines([["NAME", "ID", "ROLE"], ...rows])].join("").trimEnd();
}
