import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { type Command, Option } from "commander";
import {
  BackendError,
  backendUrlOf,
  EngineError,
  fileError,
  hasChanges,
  parseStackName,
  stackFilePath,
  typeName,
} from "../engine/index.ts";
import type { Undeclarable } from "../estate/liveObjects.ts";
import { FORMATS, type Format, type Program, type ProgramFile } from "../import/model.ts";
import type { Connection } from "../service/connection.ts";
import { counted, printable } from "../words.ts";
import type { ActionOf, Io, Outcome } from "./outcome.ts";
import { colors, progressLine, resultText } from "./render.ts";
import { withConnection } from "./service.ts";
import { writeOutput } from "./writeOutput.ts";

const KINDS = ["Namespace", "Member", "PublicKey", "FirewallRule", "ApiKey", "DeviceTags"] as const;

interface Flags {
  readonly tenant?: string;
  readonly out: string;
  readonly format: Format;
  readonly plugin: boolean;
  readonly only?: readonly string[];
  readonly project?: string;
  readonly stack?: string;
  readonly state?: "stack" | "file" | "none";
  readonly adopt: boolean;
}

const AFTER = `
Asks the service that GATEHOUSE_URL names, with the credential of the other GATEHOUSE_ variables, and writes nothing to
it. Secrets are never read: an API key is declared without its secret.

With --format terraform the folder becomes a root module of Terraform or OpenTofu with import blocks, and no state is
written: a plan shows the imports, and an apply makes the state of them. --plugin, --adopt, --project, --stack and --state
(other than none) are of Pulumi alone.

Exit codes: 0 the program is written, and, but for a root module, its preview is empty; 1 an error.`;

export function addImportCommand(program: Command, action: ActionOf): void {
  program
    .command("import")
    .description(
      "write a program for what a namespace has already, and its state, so that its preview is empty",
    )
    .option("--tenant <name>", "the namespace, by name or id; default GATEHOUSE_TENANT or the only one")
    .requiredOption("--out <folder>", "folder for the program; it must have none yet")
    .addOption(
      new Option(
        "--format <format>",
        "language of the program; yaml is for the plugin, terraform a root module of Terraform or OpenTofu",
      )
        .choices(FORMATS)
        .default("typescript"),
    )
    .option("--plugin", "a program for the plugin, in place of dynamic resources", false)
    .addOption(
      new Option("--only <kind...>", "only these kinds of resources; default all of them").choices(KINDS),
    )
    .option("--project <name>", "name of the Pulumi project; default that of the folder")
    .option("-s, --stack <name>", "name of the stack; default that of the namespace")
    .addOption(
      new Option(
        "--state <where>",
        "stack: the state goes into the stack; file: into a file for `pulumi stack import`; none: no state. Default: " +
          "stack where the backend is of files, else file",
      ).choices(["stack", "file", "none"]),
    )
    .addOption(
      new Option("--adopt", "no state: every resource says adopt: true instead, without API keys").conflicts(
        "state",
      ),
    )
    .addHelpText("after", AFTER)
    .action(action(importing));
}

interface ImportFlags extends Flags {
  readonly project: string;
  readonly stack: string;
  readonly tenant: string;
}

async function importing(io: Io, flags: Flags): Promise<Outcome> {
  const { out, format, adopt } = flags;
  if (format === "terraform") rejectPulumiFlags(flags);
  const plugin = flags.plugin || format === "yaml";
  const named = flags.stack === undefined ? undefined : parseStackName(flags.stack);
  if (flags.project !== undefined && named?.project !== undefined && flags.project !== named.project) {
    throw new EngineError(
      "usage",
      `--stack ${flags.stack} is of the project ${named.project}, and --project is ${flags.project}.`,
    );
  }
  const live = await withConnection(io, new Map(), (connection) => readNamespace(io, connection, flags));
  const { name: namespace, tenant, service, inventory } = live;
  const { declarable } = await import("../estate/liveObjects.ts");
  const { writeProgram } = await import("../import/writeProgram.ts");
  const { yamlText } = await import("../import/yaml.ts");
  const { declarable: objects, undeclarable } = declarable(inventory.objects);
  const project = flags.project ?? named?.project ?? plainName(basename(resolve(out)));
  const stack = flags.stack ?? plainName(namespace);
  const program = writeProgram(objects, { project, namespace, tenant, service, format, plugin, adopt });
  const settings = {
    path: stackFilePath({ configFolder: "" }, stack),
    text: yamlText({ config: { "gatehouse:url": service, "gatehouse:tenant": tenant } }),
  };
  await writeFolder(out, [...program.files, ...(format === "terraform" ? [] : [settings])]);
  const why = format === "terraform" ? NOT_NORMAL : "it cannot be adopted";
  const left = program.leftOut.map(
    ({ definition, name }) => `${definition.name} ${name} is left out: ${why}`,
  );
  printWritten(io, out, program, [...inventory.unknown, ...undeclarable.map(reasonText), ...left]);
  const next = await nextSteps(io, { ...flags, plugin, project, stack, tenant }, program);
  return { text: () => next };
}

/** Creates the state, if there is to be one. @returns what the user does next */
async function nextSteps(io: Io, flags: ImportFlags, { resources }: Program): Promise<string> {
  const { out, format, plugin, stack, adopt, state } = flags;
  if (format === "terraform") {
    // Import blocks are in the root module already.
    const { clisFor } = await import("../terraform/installProvider.ts");
    const command = clisFor(io.env)[0]?.command;
    return `Next, in ${out}, with the provider (gatehouse terraform install):
  ${command} init
  ${command} plan     # imports alone: nothing to add, to change or to destroy
  ${command} apply    # makes the state, and writes nothing to the service`;
  }
  if (adopt || state === "none") return `Next: gatehouse preview ${out} --stack ${stack} --create`;
  if (plugin) {
    // The plugin's own import takes a list.
    const { jsonText } = await import("../import/literal.ts");
    await writeOutput(join(out, "import.json"), jsonText({ resources }, 1));
    return `Next, in ${out}, with the plugin (gatehouse pulumi install):
  pulumi stack init ${stack}
  pulumi import --file import.json --generate-code=false --protect=false --yes
  gatehouse preview`;
  }
  return createState(io, flags, resources);
}

const NOT_NORMAL =
  "Terraform would ask for another id, since it turns all text into Unicode's normal form C; rename it first";

/** @throws EngineError (`usage`) naming a flag that Terraform does not have */
function rejectPulumiFlags({ state, plugin, adopt, project, stack }: Flags): void {
  const reject = (flag: string, why: string): never => {
    throw new EngineError("usage", `${flag} is not for --format terraform: ${why}.`);
  };
  if (state !== undefined && state !== "none") {
    reject(
      `--state ${state}`,
      "no state is written for it; a plan shows what the import blocks import, and an apply makes the state",
    );
  }
  if (plugin) reject("--plugin", "its resources are those of the Terraform provider");
  if (adopt) reject("--adopt", "import blocks take the objects over");
  if (project !== undefined) reject("--project", "projects are Pulumi's");
  if (stack !== undefined) reject("--stack", "stacks are Pulumi's");
}

/** A name for a project or a stack: what Pulumi takes of it. */
const plainName = (name: string) => name.replaceAll(/[^A-Za-z0-9_.-]+/g, "-").slice(0, 100) || "access";

const reasonText = ({ object: { definition, name, id }, reason }: Undeclarable) =>
  `${definition.name} ${name} (${id}) is left out: ${reason}`;

async function readNamespace({ stderr }: Io, connection: Connection, { tenant, only }: Flags) {
  const { inventoryOf } = await import("../estate/liveObjects.ts");
  const { namespaceOf } = await import("../service/lookups.ts");
  const { tenantId } = await import("@gatehouse-access/sdk/contract");
  const isId = tenantId.safeParse(tenant).success;
  const lookup = tenant === undefined ? {} : isId ? { tenant } : { name: tenant };
  const { tenantId: id, name } = await namespaceOf(connection, lookup);
  const service = connection.client.url;
  stderr.write(`Reading ${printable(name)} (${id}) on ${service}\n`);
  return { tenant: id, name, service, inventory: await inventoryOf(connection, id, only ?? KINDS) };
}

/** Writes files that do not exist yet. @throws EngineError (`usage`) naming one that exists */
async function writeFolder(out: string, files: readonly ProgramFile[]): Promise<void> {
  const existing = files.find(({ path }) => existsSync(join(out, path)));
  if (existing) {
    throw new EngineError(
      "usage",
      `--out ${out}: there is a ${existing.path} already; name a folder without a program.`,
    );
  }
  for (const { path, text } of files) {
    const file = join(out, path);
    await mkdir(dirname(file), { recursive: true }).catch(fileError("output", "write", dirname(file)));
    await writeOutput(file, text);
  }
}

function printWritten(
  { stdout, stderr, env }: Io,
  out: string,
  { files, resources }: Program,
  notes: readonly string[],
): void {
  const counts = Map.groupBy(resources, ({ type }) => typeName(type));
  const text = [...counts].map(([kind, some]) => `${some.length} ${kind}`).join(", ");
  stdout.write(`Written to ${out}: ${files.map(({ path }) => path).join(", ")}\n`);
  stdout.write(`${counted(resources.length, "resource")}${text === "" ? "" : `: ${text}`}\n`);
  const c = colors(stderr, env);
  for (const note of notes) stderr.write(`${c.yellow(`note: ${printable(note)}`)}\n`);
}

async function createState(
  io: Io,
  { out, project, stack, tenant, state }: ImportFlags,
  resources: Program["resources"],
): Promise<string> {
  const { hasPackages, importState } = await import("../import/importRun.ts");
  if (!hasPackages(out)) await installPackages(io, out);
  const backend = await fileBackendOf(io, out, state);
  const c = colors(io.stderr, io.env);
  const { name } = parseStackName(stack);
  const { preview, deployment } = await importState({
    // A state for a file is created in a file backend, which has no organizations.
    ...{ folder: out, project, stack: backend === undefined ? name : stack, backend, resources },
    env: { ...io.env, GATEHOUSE_TENANT: tenant },
    onEvent: (event) => {
      const isMessage = event.kind === "diagnostic" && event.diagnostic.severity !== "info";
      const line = isMessage ? progressLine(c, event) : undefined;
      if (line !== undefined) io.stderr.write(`${line}\n`);
    },
  });
  if (hasChanges(preview)) {
    throw new EngineError(
      "import",
      `the preview of the imported program is not empty:\n${resultText(c, preview)}`,
    );
  }
  if (backend !== undefined)
    return `The stack ${stack} has them all; its preview is empty. Next: gatehouse preview ${out} --stack ${stack}`;
  const file = `${name}.state.json`;
  await writeOutput(join(out, file), JSON.stringify(deployment));
  return `The preview is empty with the state in ${join(out, file)}. Next, in ${out}:
  pulumi stack init ${stack}
  pulumi stack import --file ${file}`;
}

/**
 * The file backend that takes the state; undefined if the state becomes a file.
 * @throws EngineError (`usage`) for `--state stack` if the backend is no file backend
 */
async function fileBackendOf({ env }: Io, folder: string, state: Flags["state"]) {
  if (state === "file") return undefined;
  const backend = await backendUrlOf(folder, env).catch((error: unknown) => {
    if (state === undefined && error instanceof BackendError) return undefined;
    throw error;
  });
  const isFiles = backend?.startsWith("file://") ?? false;
  if (state === "stack" && !isFiles) {
    throw new EngineError(
      "usage",
      `--state stack is for backends of files, and the backend is ${backend}; use --state file.`,
    );
  }
  return isFiles ? backend : undefined;
}

/** Installs what the program imports, as `pulumi new` does. @throws EngineError (`packages`) where that fails */
async function installPackages({ stderr, env }: Io, folder: string): Promise<void> {
  stderr.write("Installing the packages of the program (npm install)\n");
  const child = spawn("npm", ["install", "--no-audit", "--no-fund"], {
    cwd: folder,
    env,
    stdio: ["ignore", "ignore", "inherit"],
  });
  const code = await new Promise((done) => child.once("error", done).once("close", done));
  if (code === 0) return;
  throw new EngineError(
    "packages",
    `npm install failed in ${folder}; the program is written. Install its packages, then either remove its files and run this again, or use --adopt`,
  );
}
