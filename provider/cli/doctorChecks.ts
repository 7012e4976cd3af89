import { execFile } from "node:child_process";
import { constants, existsSync } from "node:fs";
import { access, readdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";
import {
  type Client,
  createClient,
  credentialsFromEnvironment,
  isLoopbackHost,
  isNotFound,
  PermissionError,
  proxiesFromEnvironment,
  RequestError,
  type ResponseOf,
  readClaims,
  sshAccessModeOf,
} from "@gatehouse-access/sdk";
import { HOUR } from "@gatehouse-access/sdk/times";
import { fileError, INSTALL, StackSelectionError } from "../engine/errors.ts";
import { ifThere, parseJsonFile } from "../engine/files.ts";
import { type EngineName, findOnPath, openStack, type Project, selectedEngine } from "../engine/index.ts";
import {
  backendFolder,
  chooseBackend,
  projectFile,
  pulumiHome,
  readProject,
  requireNodeRuntime,
} from "../engine/project.ts";
import { FileBackend, findLocks } from "../engine/state/fileBackend.ts";
import { packageVersion } from "../packageFile.ts";
import { CAPABILITIES, hasCapability, serversWith } from "../service/capabilities.ts";
import type { Connection } from "../service/connection.ts";
import { type Lookup, newConnection, settings } from "../service/newConnection.ts";
import { newerVersionNote, type Server, serverOf, serverText } from "../service/server.ts";
import { TERRAFORM_CLIS } from "../terraform/source.ts";
import { byText, counted, firstOf } from "../words.ts";
import { type Check, type Finding, LIMIT, NotChecked, ok, problem, runCheck } from "./doctorReport.ts";
import type { ConfigurationFlags } from "./flags.ts";

/** Programs that only some features need. `least` is the oldest version that the feature supports. */
const TOOLS = [
  ...Object.values(TERRAFORM_CLIS).map(({ command, name, versions }) => {
    return { command, flag: "-version", least: versions.least, use: `configurations of ${name}` };
  }),
  { command: "git", flag: "--version", least: "0", use: "gatehouse review --base" },
  { command: "ssh", flag: "-V", least: "0", use: "the output of gatehouse ssh-config" },
];

const PACKAGE = "@gatehouse-access/provider";
const PLUGIN = "resource-gatehouse-v";

const CREDENTIAL_REMEDY =
  "Set GATEHOUSE_API_KEY, GATEHOUSE_TOKEN, GATEHOUSE_USERNAME and GATEHOUSE_PASSWORD, or GATEHOUSE_OIDC to a valid credential.";
const TENANT_REMEDY =
  "Set GATEHOUSE_TENANT to the id of a namespace that the credential can read. Run gatehouse namespace list, which prints the ids.";

const KINDS = {
  apiKey: "API key",
  token: "token of a user",
  password: "user",
  workload: "workload",
  anonymous: "no credential",
};

/** Request settings that disable retries, because a retry would only delay the report. */
const ONCE = { budget: 0, firstContact: 0, deadline: LIMIT };

/** The settings of one run of `gatehouse doctor`, and the values that checks store for later checks. */
interface Run extends ConfigurationFlags {
  readonly env: NodeJS.ProcessEnv;
  readonly folder: string;
  readonly clients: Client[];
  readonly lookup: Lookup;
  usedEngine?: EngineName;
  project?: Project;
  configuration?: ReadonlyMap<string, string>;
  /** A client without a credential. Set after the service responded. */
  reached?: Client;
  /** This machine's time minus the service's time, in seconds. */
  clockDifference?: number;
  connection?: Connection;
  namespace?: ResponseOf<"getNamespace">;
}

/** The checks in the order of the report. `remedy` is used for errors that have no remedy of their own. */
const CHECKS: readonly (readonly [name: string, work: (run: Run) => Promise<Finding>, remedy?: string])[] = [
  ["gatehouse", async () => ok(`${packageVersion()}, Node.js ${process.versions.node}`)],
  ["pulumi", checkPulumi, `Install the Pulumi CLI again (${INSTALL}).`],
  ...TOOLS.map((tool) => [tool.command, (run: Run) => checkTool(run, tool), "Install it again."] as const),
  ["project", checkProject, "Correct Pulumi.yaml, or select another engine."],
  ["package", checkPackage, "Install the package again."],
  ["backend", checkBackend, "Set PULUMI_BACKEND_URL to a folder, or select another engine."],
  ["stack", checkStack, "Correct the stack, its passphrase, or the Pulumi CLI."],
  ["address", checkAddress, "Set GATEHOUSE_URL to the address of the service."],
  ["credential", checkCredential, CREDENTIAL_REMEDY],
  ["clock", checkClock],
  ["server", checkServer],
  ["access mode", checkAccessMode],
];

/** Runs all checks of a project directory. A check whose requirement is missing has the state `not checked`. */
export async function diagnose(
  env: NodeJS.ProcessEnv,
  folder: string,
  flags: ConfigurationFlags,
): Promise<readonly Check[]> {
  const run: Run = { ...flags, env, folder, clients: [], lookup: (key) => run.configuration?.get(key) };
  const checks: Check[] = [];
  try {
    for (const [name, work, remedy = "Check the log of the service."] of CHECKS)
      checks.push({ name, ...(await runCheck(remedy, () => work(run))) });
  } finally {
    await Promise.all(run.clients.map((client) => client.close()));
  }
  return checks;
}

function needed<T>(value: T | undefined, reason: string): T {
  if (value === undefined) throw new NotChecked(reason);
  return value;
}

/** Returns the version that a program prints; undefined if the program is not on the PATH. */
async function versionOf(env: NodeJS.ProcessEnv, command: string, flag: string): Promise<string | undefined> {
  const path = findOnPath(command, env);
  if (path === undefined) return undefined;
  const own = { ...env, CHECKPOINT_DISABLE: "1", PULUMI_SKIP_UPDATE_CHECK: "true" };
  const { stdout, stderr } = await promisify(execFile)(path, [flag], { env: own, timeout: LIMIT }).catch(
    // A program that fails may still print its version. The error object contains the output of the program.
    (error: { readonly stdout: string; readonly stderr: string }) => error,
  );
  // OpenSSH prints its version to the standard error.
  return /\d+\.\d+(\.\d+)?/.exec((stdout || stderr).slice(0, 200))?.[0] ?? "unknown version";
}

async function checkPulumi(run: Run): Promise<Finding> {
  const engine = selectedEngine(run.engine, run.env);
  const version = await versionOf(run.env, "pulumi", "version");
  if (version !== undefined || engine === "embedded") run.usedEngine = engine;
  const used = engine === "cli" ? "the Pulumi CLI" : "the embedded engine";
  if (version !== undefined) return ok(`${version}; runs use ${used}`);
  const found = `not on the PATH; runs use ${used}`;
  if (engine === "embedded") return problem("warning", found, `For production, install it (${INSTALL}).`);
  const remedy = `To run Pulumi programs, install it (${INSTALL}), or set GATEHOUSE_ENGINE=embedded.`;
  return problem(projectFile(run.folder) ? "failed" : "warning", found, remedy);
}

async function checkTool(run: Run, { command, flag, least, use }: (typeof TOOLS)[number]): Promise<Finding> {
  const version = await versionOf(run.env, command, flag);
  if (version === undefined) return problem("not checked", "not on the PATH", `Install it for ${use}.`);
  if (/^\d/.test(version) && byText(version, least) >= 0) return ok(version);
  return problem("warning", version, `Install version ${least} or newer for ${use}.`);
}

async function checkProject(run: Run): Promise<Finding> {
  // A missing folder is an error. A folder without a project is not an error, because most commands need no project.
  if (existsSync(run.folder)) needed(projectFile(run.folder), `${run.folder} has no Pulumi.yaml`);
  const project = await readProject(run.folder);
  if (run.usedEngine === "embedded") requireNodeRuntime(project);
  run.project = project;
  return ok(`${project.name}, runtime ${project.runtime}`);
}

/** Checks that the program uses the same version of the Gatehouse resources as this command. */
async function checkPackage(run: Run): Promise<Finding> {
  const { runtime, programFolder } = needed(run.project, "no project");
  const own = packageVersion();
  const folders = createRequire(join(programFolder, "index.js")).resolve.paths(PACKAGE) ?? [];
  const file = folders.map((folder) => join(folder, PACKAGE, "package.json")).find(existsSync);
  const plugins = (await ifThere(readdir(join(pulumiHome(run.env), "plugins")))) ?? [];
  const versions =
    runtime === "nodejs" && file !== undefined
      ? [(parseJsonFile(await readFile(file, "utf8"), file) as { readonly version: string }).version]
      : plugins.filter((name) => name.startsWith(PLUGIN)).map((name) => name.slice(PLUGIN.length));
  const found = `the program uses version ${versions.join(", ") || "none"}, this command has version ${own}`;
  if (versions.includes(own)) return ok(own);
  const node = runtime === "nodejs" ? `install ${PACKAGE}@${own} in ${programFolder}, or ` : "";
  return problem("warning", found, `${node}run gatehouse pulumi install.`);
}

async function checkBackend(run: Run): Promise<Finding> {
  const project = needed(run.project, "no project");
  const choice = await chooseBackend(project, run.env);
  const isEmbedded = run.usedEngine === "embedded";
  // The address may contain a password.
  const [scheme = ""] = choice.url.split(":");
  if (!isEmbedded && scheme !== "file") throw new NotChecked(`only the Pulumi CLI can check ${scheme}://`);
  const root = backendFolder(choice, project);
  const found = `${root} (${choice.source})`;
  if (!existsSync(root)) return problem("failed", `${found} does not exist`, "Create the folder.");
  for (const path of [root, join(root, ".pulumi"), join(root, ".pulumi", "stacks", project.name)]) {
    await ifThere(readdir(path)).catch(fileError("backend", "read", path));
    await ifThere(access(path, constants.W_OK)).catch(fileError("backend", "write", path));
  }
  const stacks = await FileBackend.stacks(root, project.name);
  const folders = stacks.map((stack) => new FileBackend(root, project.name, stack).lockFolder);
  const locks = (await Promise.all(folders.map(findLocks))).flat().filter(({ deadOwn }) => !deadOwn);
  if (locks.length === 0) return ok(`${found}, ${counted(stacks.length, "stack")}`);
  const holders = locks.map(({ path, content }) => `${path} of ${content.username}@${content.hostname}`);
  const remedy = "Wait until the run ends; if its process no longer exists, delete the file.";
  return problem("warning", `${found} has locks: ${firstOf(holders, 3)}`, remedy);
}

/** Reads the configuration of the stack, with the passphrase. */
async function checkStack(run: Run): Promise<Finding> {
  needed(run.project, "no project");
  const { env, folder, stack: name } = run;
  const engine = needed(run.usedEngine, "no engine");
  const stack = await openStack({ env, folder, stack: name, engine }).catch((error: unknown) => {
    // A project may have no stack yet: the first run creates the stack.
    if (error instanceof StackSelectionError && !name) throw new NotChecked(error.detail);
    throw error;
  });
  run.configuration = await stack.config();
  return ok(`${stack.stack}, ${counted(run.configuration.size, "configuration value")}`);
}

async function checkAddress(run: Run): Promise<Finding> {
  const { GATEHOUSE_URL, GATEHOUSE_URL_FILE, GATEHOUSE_CA_FILE } = settings(run.lookup, run.env);
  const { url, ca } = credentialsFromEnvironment({ GATEHOUSE_URL, GATEHOUSE_URL_FILE, GATEHOUSE_CA_FILE });
  const proxyFor = proxiesFromEnvironment(run.env);
  const remedy = "Set it to the address of the service, for example https://access.example.org.";
  if (url === undefined) return problem("failed", "GATEHOUSE_URL is not set", remedy);
  const client = createClient({ url, retry: ONCE, proxyFor, ...(ca !== undefined && { ca }) });
  run.clients.push(client);
  const answer = await client.call("getInfo").catch((error: unknown) => {
    // A proxy may not forward this request. An error without a response has no status.
    if (error instanceof RequestError && (error.status ?? 500) < 500) return error;
    throw error;
  });
  run.reached = client;
  if (answer instanceof RequestError)
    return problem(
      "warning",
      `/info: ${answer.detail}`,
      answer.remedy ?? "Check GATEHOUSE_URL and the proxy.",
    );
  const at = Date.parse(answer.headers.date ?? "");
  if (at) run.clockDifference = Math.round((Date.now() - at) / 1000);
  const target = new URL(client.url);
  const proxy = proxyFor(target);
  const place = proxy ? `${client.url} through the proxy ${proxy.address} (${proxy.setting})` : client.url;
  if (target.protocol === "http:")
    return isLoopbackHost(target.hostname)
      ? ok(place)
      : problem("warning", `${place} is not encrypted`, "Use an https:// address.");
  if (process.env.NODE_TLS_REJECT_UNAUTHORIZED === "0")
    return problem("warning", `${place}, TLS not verified`, "Unset NODE_TLS_REJECT_UNAUTHORIZED.");
  return ok(`${place}, TLS verified${ca === undefined ? "" : " with GATEHOUSE_CA_FILE"}`);
}

async function checkCredential(run: Run): Promise<Finding> {
  // The check `address` reports errors of the address. An empty variable is treated as not set.
  const others = { GATEHOUSE_URL: "", GATEHOUSE_URL_FILE: "", GATEHOUSE_CA_FILE: "" };
  const given = credentialsFromEnvironment({ ...settings(run.lookup, run.env), ...others });
  if (given.credential === undefined) return problem("failed", "no credential is set", CREDENTIAL_REMEDY);
  needed(run.reached, "the service was not reached");
  const connection = newConnection(run.lookup, { tell: () => {}, retry: ONCE }, run.env);
  const { client } = connection;
  run.clients.push(client);
  const { kind, userId, workload } = await client.identity();
  const who = workload ? `workload ${workload.actor}` : KINDS[kind];
  const { tenant, unsettled } = await connection.homeIfAny();
  if (tenant === undefined) {
    // This result is only a warning, because each resource can set its namespace.
    const finding = await runCheck(TENANT_REMEDY, () => Promise.reject(unsettled));
    return { ...finding, state: "warning" };
  }
  try {
    run.namespace = await client.forTenant(tenant).getNamespace({ params: { tenant } });
  } catch (error) {
    if (!isNotFound(error) && !(error instanceof PermissionError)) throw error;
    return problem("failed", `${who}, namespace ${tenant}: ${error.detail}`, TENANT_REMEDY);
  }
  run.connection = connection;
  const { name, members } = run.namespace;
  const role = workload?.role ?? members.find(({ id }) => id === userId)?.role;
  const found = `${who}${role ? ` with the role ${role}` : ""}, namespace ${name} (${tenant})`;
  const end = kind === "token" ? readClaims(await client.sessionToken())?.expiresAt : undefined;
  if (workload) return ok(`${found}, session can be renewed until ${workload.renewableUntil.toISOString()}`);
  if (end === undefined) return ok(found);
  const text = `${found}, expires at ${end.toISOString()}`;
  const isSoon = end.getTime() - Date.now() < 24 * HOUR;
  return isSoon ? problem("warning", text, "Set GATEHOUSE_TOKEN to a new token.") : ok(text);
}

async function checkClock(run: Run): Promise<Finding> {
  needed(run.reached, "the service was not reached");
  const seconds = needed(run.clockDifference, "the service sent no date");
  const text = `${Math.abs(seconds)} s ${seconds > 0 ? "ahead of" : "behind"} the service`;
  if (Math.abs(seconds) <= 30) return ok("at most 30 s from the time of the service");
  const state = Math.abs(seconds) > 300 ? "failed" : "warning";
  return problem(state, text, "Synchronize both clocks with NTP, because tokens expire by time.");
}

/** Checks the version of the server, and lists how the server differs from `gatehouse-server`. */
async function checkServer(run: Run): Promise<Finding> {
  const reached = needed(run.reached, "the service was not reached");
  const server = await (run.connection?.server(run.namespace?.tenantId) ?? serverOf(reached, undefined));
  if (!run.connection) needed(server.version, "the server reports no version");
  const details = [
    ...(run.connection ? capabilityDetails(server) : []),
    ...(server.isOwn ? [] : server.dialect.differences.map(({ text }) => text)),
  ];
  const usage = server.isOwn ? "" : `; requests of version ${server.dialect.name}`;
  const found = `${serverText(server)}${usage}`;
  const note = newerVersionNote(server);
  const remedy = "Check the plan with a preview, and upgrade Gatehouse when it supports this version.";
  const finding = note === undefined ? ok(found) : problem("warning", note, remedy);
  return { ...finding, ...(details.length > 0 && { details }) };
}

/**
 * Returns sentences about the capabilities of a server. The first sentence lists the available capabilities. The others
 * list the missing capabilities, with the servers that support them.
 */
function capabilityDetails(server: Server): string[] {
  const available = CAPABILITIES.filter((capability) => hasCapability(server, capability));
  const missing = CAPABILITIES.filter((capability) => !hasCapability(server, capability));
  return [
    `Available: ${available.join(", ")}.`,
    ...Array.from(Map.groupBy(missing, serversWith), ([servers, names]) =>
      servers === undefined
        ? `Not available: ${names.join(", ")}.`
        : `Not available: ${names.join(", ")}. Supported by: ${servers}.`,
    ),
  ];
}

async function checkAccessMode(run: Run): Promise<Finding> {
  const namespace = needed(run.namespace, "no namespace was read");
  switch (sshAccessModeOf(namespace)) {
    case "identity":
      return ok("identity: access policies");
    case "unknown":
      return problem("warning", "a mode that this version does not know", "Upgrade Gatehouse.");
    default:
      return ok("public keys and firewall rules");
  }
}
