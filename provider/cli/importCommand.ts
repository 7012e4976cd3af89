import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { type Command, Option } from "@commander-js/extra-typings";
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
import { FORMATS, type Program, type ProgramFile } from "../import/model.ts";
import type { LiveObject, Undeclarable } from "../namespace/liveObjects.ts";
import { IMPORTED_KINDS } from "../resources/generated/importedKinds.ts";
import type { Connection } from "../service/connection.ts";
import type { Namespace } from "../service/listings.ts";
import { counted, printable } from "../words.ts";
import type { ActionOf, CommandOutput, Io } from "./commandOutput.ts";
import type { FlagsOf } from "./flags.ts";
import { addHelp } from "./help.ts";
import { colors, progressLine, resultText } from "./render.ts";
import { withConnection } from "./service.ts";
import { writeOutput } from "./writeOutput.ts";

type Flags = FlagsOf<typeof importCommand>;

const NOTES = `
The command changes nothing on the service and reads no secrets: the program
declares API keys without their secrets.

--format terraform writes a root module with import blocks for Terraform or
OpenTofu, and no state. --plugin, --adopt, --project, --stack and --state only apply
to Pulumi.

--to-identity-mode also writes the access policies and service accounts that keep
the access of the public keys, and the change of the namespace to identity mode.
The import creates none of them: review and apply the program afterwards. No key
gets more access. The command lists the access that no access policy can express.

Exit codes: 0 = the program is written and its preview is empty; 1 = error`;

const importCommand = (program: Command) =>
  program
    .command("import")
    .option(
      "--tenant <name>",
      "Name or id of the namespace (default: GATEHOUSE_TENANT, or the only namespace)",
    )
    .requiredOption("--out <folder>", "Folder for the new program")
    .addOption(
      new Option(
        "--format <format>",
        "Language of the program; yaml needs the plugin, terraform writes a root module for Terraform or OpenTofu",
      )
        .choices(FORMATS)
        .default("typescript"),
    )
    .option("--plugin", "Write a program that uses the plugin instead of dynamic resources", false)
    .addOption(
      new Option("--only <kind...>", "Import only these kinds of resources (default: all)").choices(
        IMPORTED_KINDS,
      ),
    )
    .option("--project <name>", "Name of the Pulumi project (default: the name of the folder)")
    .option("-s, --stack <name>", "Name of the stack (default: the name of the namespace)")
    .addOption(
      new Option(
        "--state <where>",
        "Destination of the state: the stack, a file for `pulumi stack import`, or none (default: stack for a file " +
          "backend, otherwise file)",
      ).choices(["stack", "file", "none"]),
    )
    .addOption(
      new Option(
        "--adopt",
        "Write no state. The program adopts the objects with adopt: true, and omits API keys",
      ).conflicts("state"),
    )
    .addOption(
      new Option(
        "--to-identity-mode",
        "Also write access policies for the access of the public keys, and the change of the namespace to identity mode",
      )
        .default(false)
        .conflicts(["adopt", "only"]),
    );

export function addImportCommand(program: Command, action: ActionOf): void {
  addHelp(importCommand(program).action(action(importing)), {
    group: "Set up:",
    summary: "Write a program and its state for an existing namespace.",
    notes: NOTES,
    examples: [
      "gatehouse import --tenant prod --out policy",
      "gatehouse import --tenant prod --out fleet --format terraform",
      "gatehouse import --out policy --only PublicKey FirewallRule",
    ],
    page: "docs/guides/import.md",
  });
}

type ImportFlags = Flags & Required<Pick<Flags, "project" | "stack" | "tenant">>;

async function importing(io: Io, flags: Flags): Promise<CommandOutput> {
  const { out, format, adopt = false } = flags;
  if (format === "terraform") rejectPulumiFlags(flags);
  const plugin = flags.plugin || format === "yaml";
  const named = flags.stack === undefined ? undefined : parseStackName(flags.stack);
  if (flags.project !== undefined && named?.project !== undefined && flags.project !== named.project) {
    throw new EngineError(
      "usage",
      `--stack ${flags.stack} is in the project ${named.project}, but --project is ${flags.project}. Use the same project in both.`,
    );
  }
  const live = await withConnection(io, new Map(), (connection) => readNamespace(io, connection, flags));
  const { name: namespace, tenant, service, accessUnknown, inventory, move } = live;
  const { declarable } = await import("../namespace/liveObjects.ts");
  const { writeProgram } = await import("../import/writeProgram.ts");
  const { yamlText } = await import("../import/yaml.ts");
  const { withSubjectName } = await import("../import/accessPolicies.ts");
  const { declarable: possible, undeclarable } = declarable(inventory.objects);
  const objects = possible.map((object) => withSubjectName(object, live.names));
  const project = flags.project ?? named?.project ?? plainName(basename(resolve(out)));
  const stack = flags.stack ?? plainName(namespace);
  const options = { project, namespace, tenant, service, format, plugin, adopt };
  const program = writeProgram(objects, options);
  if (live.move) {
    const declared = objects.filter((object) => !program.leftOut.includes(object));
    const { isNamespace } = await import("../model/definition.ts");
    const hasNamespace = declared.some(({ definition }) => isNamespace(definition));
    if (!hasNamespace) throw undeclaredNamespace([...inventory.unknown, ...undeclarable.map(reasonText)]);
  }
  const settings = {
    path: stackFilePath({ configFolder: "" }, stack),
    text: yamlText({ config: { "gatehouse:url": service, "gatehouse:tenant": tenant } }),
  };
  await writeFolder(out, [...program.files, ...(format === "terraform" ? [] : [settings])]);
  const why = format === "terraform" ? NOT_NORMAL : "an existing object of this kind cannot be adopted";
  const left = program.leftOut.map(({ definition, name }) => `${definition.name} ${name} is omitted: ${why}`);
  const unknown = accessUnknown === undefined ? inventory.unknown : [accessUnknown, ...inventory.unknown];
  printWritten(io, out, program, [...unknown, ...undeclarable.map(reasonText), ...left]);
  const next = await nextSteps(io, { ...flags, plugin, project, stack, tenant }, program);
  if (!move) return { text: () => next };
  const newObjects = move.newObjects.map((object) => withSubjectName(object, live.names));
  const moved = writeProgram(objects, { ...options, newObjects });
  const written = new Map(program.files.map(({ path, text }) => [path, text]));
  const changed = moved.files.filter(({ path, text }) => written.get(path) !== text);
  for (const { path, text } of changed) await writeOutput(join(out, path), text);
  printNotes(io, move.inexpressible);
  const { kindOf } = await import("../resources/index.ts");
  const accounts = newObjects.filter(
    (object) => kindOf(object).decides?.subject === "service account",
  ).length;
  const commands = await moveCommands(io, flags, stack);
  return {
    text: () => `${next}

The move to identity mode is in ${changed.map(({ path }) => path).join(", ")}. It creates ${newObjects.length - accounts} AccessPolicy, ${accounts} ServiceAccount,
and then changes the mode. The notes above list access that changes. Then:
  ${commands.join("\n  ")}`,
  };
}

/**
 * Returns the error for a program that should set the mode of the namespace but cannot declare the namespace.
 * @param notes the objects that the program omits, as sentences
 */
function undeclaredNamespace(notes: readonly string[]): EngineError {
  const reasons = notes.map((note) => `\n  ${note}`).join("");
  return new EngineError(
    "import",
    `The program cannot declare the namespace, so it cannot change the mode, and nothing was written. Use a credential that can read the namespace, or omit --to-identity-mode.${reasons}`,
  );
}

/** Returns the commands that review and apply the move to identity mode. */
async function moveCommands({ env }: Io, { out, format }: Flags, stack: string): Promise<string[]> {
  if (format !== "terraform") {
    return [`gatehouse review ${out} --stack ${stack}`, `gatehouse up ${out} --stack ${stack}`];
  }
  const command = await terraformCommand(env);
  return [
    `${command} plan -out plan.bin && ${command} show -json plan.bin > plan.json`,
    "gatehouse review --terraform plan.json",
    `${command} apply plan.bin`,
  ];
}

/**
 * Returns the command `terraform` or `tofu`: the one on the PATH, or `terraform` if both or neither are on the PATH.
 */
async function terraformCommand(env: Io["env"]): Promise<string | undefined> {
  const { clisFor } = await import("../terraform/installProvider.ts");
  return clisFor(env)[0]?.command;
}

/**
 * Returns the next steps for the user after an import. For a Pulumi program, also creates the state, unless the flags
 * disable the creation.
 */
async function nextSteps(io: Io, flags: ImportFlags, { resources }: Program): Promise<string> {
  const { out, format, plugin, stack, adopt, state, toIdentityMode } = flags;
  if (format === "terraform") {
    // `apply` creates the state from the import blocks of the root module.
    const command = await terraformCommand(io.env);
    if (toIdentityMode) return `Next, in ${out}: ${command} init`;
    return `Next, in ${out}, with the provider (gatehouse terraform install):
  ${command} init
  ${command} plan     # only imports: nothing to add, change or destroy
  ${command} apply    # creates the state and changes nothing on the service`;
  }
  if (adopt || state === "none") return `Next: gatehouse preview ${out} --stack ${stack} --create`;
  if (plugin) {
    // `pulumi import` reads the resources to import from a JSON list.
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
  "Terraform would read another id, because it converts all text to Unicode normalization form C. Rename the object first";

/** Rejects flags that only apply to Pulumi. @throws EngineError (`usage`) for such a flag */
function rejectPulumiFlags({ state, plugin, adopt, project, stack }: Flags): void {
  const reject = (flag: string, why: string): never => {
    throw new EngineError("usage", `${flag} cannot be used with --format terraform: ${why}. Remove it.`);
  };
  if (state !== undefined && state !== "none") {
    reject(`--state ${state}`, "the import blocks create the state");
  }
  if (plugin) reject("--plugin", "the root module uses the Terraform provider");
  if (adopt) reject("--adopt", "import blocks adopt the objects");
  if (project !== undefined) reject("--project", "only Pulumi has projects");
  if (stack !== undefined) reject("--stack", "only Pulumi has stacks");
}

/** Returns a name for a project or a stack that contains only characters that Pulumi allows. */
const plainName = (name: string) => name.replaceAll(/[^A-Za-z0-9_.-]+/g, "-").slice(0, 100) || "access";

const reasonText = ({ object: { definition, name, id }, reason }: Undeclarable) =>
  `${definition.name} ${name} (${id}) is omitted: ${reason}`;

async function readNamespace(
  { stderr }: Io,
  connection: Connection,
  { tenant, only, toIdentityMode }: Flags,
) {
  const { inventoryOf } = await import("../namespace/liveObjects.ts");
  const { accessUnknownIn } = await import("../namespace/readNamespace.ts");
  const { definitionsByName, kindOf } = await import("../resources/index.ts");
  const { endedAt } = await import("../model/definition.ts");
  const { namespaceOf } = await import("../service/lookups.ts");
  const { tenantId } = await import("@gatehouse-access/sdk/contract");
  const isId = tenantId.safeParse(tenant).success;
  const lookup = tenant === undefined ? {} : isId ? { tenant } : { name: tenant };
  const namespace = await namespaceOf(connection, lookup);
  const { tenantId: id, name } = namespace;
  const service = connection.client.url;
  stderr.write(`Reading ${printable(name)} (${id}) on ${service}\n`);
  const accessUnknown = await accessUnknownIn(connection.client, id, namespace);
  const wanted = (only ?? IMPORTED_KINDS).map((kind) => definitionsByName[kind]);
  const read = await inventoryOf(connection, id, wanted);
  const now = new Date();
  const { expired = [], active: objects = [] } = Object.groupBy(read.objects, ({ definition, state }) =>
    endedAt(definition, state, now) === undefined ? "active" : "expired",
  );
  const notes = expired.map((object) => reasonText({ object, reason: "it has expired" }));
  const inventory = { ...read, objects, unknown: [...read.unknown, ...notes] };
  const accounts = inventory.objects.filter(
    (object) => kindOf(object).decides?.subject === "service account",
  );
  const { readMove } = await import("./identityModeMove.ts");
  const move = toIdentityMode ? await readMove(connection, namespace, inventory.objects) : undefined;
  return { tenant: id, name, service, accessUnknown, inventory, move, names: namesOf(namespace, accounts) };
}

/** Returns the names of the users and service accounts of a namespace, by id. */
function namesOf({ members }: Namespace, accounts: readonly LiveObject[]): ReadonlyMap<string, string> {
  return new Map([
    ...members.map(({ id, email }) => [id, email] as const),
    ...accounts.map(({ id, name }) => [id.slice(id.indexOf("/") + 1), name] as const),
  ]);
}

/** Writes the files of a program. @throws EngineError (`usage`) with the path of a file that already exists */
async function writeFolder(out: string, files: readonly ProgramFile[]): Promise<void> {
  const existing = files.find(({ path }) => existsSync(join(out, path)));
  if (existing) {
    throw new EngineError(
      "usage",
      `${join(out, existing.path)} already exists. Choose a folder without a program for --out.`,
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
  printNotes({ stderr, env }, notes);
}

function printNotes({ stderr, env }: Pick<Io, "stderr" | "env">, notes: readonly string[]): void {
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
    // If the user has no file backend, the state is created in a temporary file backend. This backend has no
    // organizations, so the stack name must not contain an organization.
    folder: out,
    project,
    stack: backend === undefined ? name : stack,
    backend,
    resources,
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
      `The preview of the imported program is not empty:\n${resultText(c, preview)}`,
    );
  }
  if (backend !== undefined)
    return `The state is in the stack ${stack}. Its preview is empty. Next: gatehouse preview ${out} --stack ${stack}`;
  const file = `${name}.state.json`;
  await writeOutput(join(out, file), JSON.stringify(deployment));
  return `The state is in ${join(out, file)}. Its preview is empty. Next, in ${out}:
  pulumi stack init ${stack}
  pulumi stack import --file ${file}`;
}

/**
 * Returns the URL of the file backend that stores the state. Returns undefined if the state is written to a file for
 * `pulumi stack import`.
 * @throws EngineError (`usage`) for `--state stack` if the backend is not a file backend
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
      `--state stack needs a file backend, but the backend is ${backend}. Use --state file.`,
    );
  }
  return isFiles ? backend : undefined;
}

/** Installs the packages of the program, as `pulumi new` does. @throws EngineError (`packages`) if npm fails */
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
    `npm install failed in ${folder}. The program is written, but it has no state. Install the packages in this directory, delete the files of the program, and run the command again. Or use --adopt.`,
  );
}
