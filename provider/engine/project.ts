import { existsSync, statSync } from "node:fs";
import { appendFile, readFile, stat, writeFile } from "node:fs/promises";
import { homedir, userInfo } from "node:os";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { FieldPath } from "@gatehouse-access/sdk/errors";
import { isMap as isYamlMap, parseDocument } from "yaml";
import { unsupportedUse } from "./engineDifferences.ts";
import { BackendError, fileError, ProjectError, StackSelectionError, UnsupportedError } from "./errors.ts";
import { asMap, ifThere, isMap, parseJsonFile, parseYamlMap, readIfThere, writeDurably } from "./files.ts";
import type { Crypter } from "./state/crypter.ts";
import { type Props, secret } from "./value.ts";

/** The settings of Pulumi.yaml. */
export interface Project {
  readonly name: string;
  /** Project directory, which contains Pulumi.yaml. */
  readonly root: string;
  readonly file: string;
  /** Working directory of the program. */
  readonly programFolder: string;
  /**
   * The program's file, relative to the working directory. The path `.` stands for the file in the field `main` of
   * package.json.
   */
  readonly entryPoint: string;
  readonly runtime: string;
  readonly runtimeOptions: {
    readonly typescript: boolean;
    readonly nodeargs: string;
    readonly tsconfig?: string;
  };
  readonly backendUrl?: string;
  /** Directory that contains the Pulumi.<stack>.yaml files. */
  readonly configFolder: string;
  /** The section `config`, which contains values and defaults for all stacks. */
  readonly config: Readonly<Record<string, unknown>>;
}

/**
 * Returns the absolute path of the project file in a directory. Returns undefined if the directory has no project file.
 */
export const projectFile = (folder: string): string | undefined =>
  ["Pulumi.yaml", "Pulumi.yml"].map((name) => resolve(folder, name)).find((path) => existsSync(path));

/**
 * Reads the project in a directory.
 * @throws ProjectError if the directory has no Pulumi.yaml, or the file is invalid
 */
export async function readProject(folder: string): Promise<Project> {
  const root = resolve(folder);
  const file = projectFile(root);
  if (!file) throw missingProject(root);
  const yaml = parseYamlMap(await readFile(file, "utf8"), file);
  if (typeof yaml.name !== "string") throw new ProjectError(`${file} has no name.`);
  const runtime = typeof yaml.runtime === "string" ? { name: yaml.runtime } : asMap(yaml.runtime);
  const options = asMap(asMap(runtime).options);
  const main = resolve(root, textIn(yaml.main) ?? ".");
  const mainIsFolder = !existsSync(main) || statSync(main).isDirectory();
  return {
    name: yaml.name,
    root,
    file,
    programFolder: mainIsFolder ? main : dirname(main),
    entryPoint: mainIsFolder ? "." : basename(main),
    runtime: String(runtime.name ?? ""),
    runtimeOptions: {
      typescript: options.typescript !== false,
      nodeargs: textIn(options.nodeargs) ?? "",
      tsconfig: textIn(options.tsconfig),
    },
    backendUrl: textIn(asMap(yaml.backend).url) || undefined,
    configFolder: resolve(root, textIn(yaml.stackConfigDir) ?? "."),
    config: asMap(yaml.config),
  };
}

/** The error for a directory without Pulumi.yaml. */
function missingProject(folder: string): ProjectError {
  const found = statSync(folder, { throwIfNoEntry: false });
  const detail =
    found === undefined
      ? `The folder ${folder} does not exist`
      : found.isDirectory()
        ? `The folder ${folder} does not contain Pulumi.yaml`
        : `${folder} is a file, not a folder`;
  return new ProjectError(detail, { remedy: "use the folder of a program, which contains Pulumi.yaml" });
}

const textIn = (value: unknown) => (typeof value === "string" ? value : undefined);

/** @throws UnsupportedError if the program's runtime is not Node.js */
export function requireNodeRuntime(project: Project): void {
  if (project.runtime !== "nodejs") {
    throw new UnsupportedError([unsupportedUse("runtime", `${project.file} (${project.runtime})`)]);
  }
}

/** The parts of a stack's name in Pulumi's format: `prod`, `organization/prod` or `organization/project/prod`. */
interface StackName {
  readonly organization?: string;
  readonly project?: string;
  /** Name of the stack without organization and project. File names and URNs of the stack contain this name. */
  readonly name: string;
}

/** @throws StackSelectionError if the string is not a valid stack name */
export function parseStackName(stack: string): StackName {
  const parts = stack.split("/");
  const [name = "", project, organization] =
    parts.length === 2 ? [parts[1], undefined, parts[0]] : parts.toReversed();
  if (parts.length > 3 || !parts.every((part) => /^(?!\.+$)[A-Za-z0-9_.-]{1,100}$/.test(part))) {
    throw new StackSelectionError(
      `${JSON.stringify(stack)} is not a valid stack name. Use letters, digits, "-", "_" and ".", or organization/project/name.`,
    );
  }
  return {
    ...(organization !== undefined && { organization }),
    ...(project !== undefined && { project }),
    name,
  };
}

/**
 * Returns the name of the only stack in a project.
 * @throws StackSelectionError if the project has no stack, or more than one stack
 */
export function onlyStack(project: string, stacks: readonly string[]): string {
  const [only, ...others] = stacks;
  if (only !== undefined && others.length === 0) return only;
  throw StackSelectionError.unnamed(project, stacks);
}

/** The content of Pulumi.<stack>.yaml. */
export interface StackFile {
  readonly path: string;
  readonly exists: boolean;
  readonly encryptionSalt?: string;
  readonly config: Readonly<Record<string, unknown>>;
}

interface ConfigValue {
  readonly text: string;
  readonly secret: boolean;
}

/** The configuration that a program receives. */
export interface StackConfig {
  /** The configuration values, by `namespace:key`. */
  readonly values: ReadonlyMap<string, ConfigValue>;
  /**
   * The configuration values as the file contains them, with secrets encrypted. The history of the stack contains these
   * values.
   */
  readonly raw: Readonly<Record<string, unknown>>;
}

/**
 * Returns the path of the stack's settings, even if the file does not exist.
 * @throws StackSelectionError for invalid names
 */
export const stackFilePath = ({ configFolder }: Pick<Project, "configFolder">, stack: string): string =>
  join(configFolder, `Pulumi.${parseStackName(stack).name}.yaml`);

/**
 * @throws ProjectError if the file cannot be read; UnsupportedError if the file has an ESC environment or a secrets
 * provider other than a passphrase
 */
export async function readStackFile(project: Project, stack: string): Promise<StackFile> {
  const path = stackFilePath(project, stack);
  const text = await readIfThere(path, ProjectError);
  if (text === undefined) return { path, exists: false, config: {} };
  const yaml = parseYamlMap(text, path);
  if (yaml.environment !== undefined) throw new UnsupportedError([unsupportedUse("environment", path)]);
  const provider = yaml.secretsprovider;
  if (typeof provider === "string" && !["", "default", "passphrase"].includes(provider)) {
    throw new UnsupportedError([unsupportedUse("secrets-provider", `${path} (${provider.split(":")[0]})`)]);
  }
  return { path, exists: true, encryptionSalt: textIn(yaml.encryptionsalt), config: asMap(yaml.config) };
}

export async function writeSalt(file: StackFile, saltText: string): Promise<void> {
  const line = `encryptionsalt: ${saltText}\n`;
  if (!file.exists) return writeFile(file.path, line);
  const before = await readFile(file.path, "utf8");
  await appendFile(file.path, before === "" || before.endsWith("\n") ? line : `\n${line}`);
}

/** Sets a configuration value in plaintext. @throws ProjectError if the file is not valid YAML */
export async function writeConfig({ path }: StackFile, key: string, text: string): Promise<void> {
  const document = parseDocument(await readFile(path, "utf8"));
  const [error] = document.errors;
  if (error) throw new ProjectError(`${path} is not valid YAML: ${error.message}`);
  if (!isYamlMap(document.get("config", true))) document.set("config", document.createNode({}));
  document.setIn(["config", key], text);
  // Disables line folding, which would change long strings.
  await writeDurably(path, document.toString({ lineWidth: 0 }));
}

/**
 * Merges the project's values and defaults with the stack's values, and decrypts secrets.
 * @throws PassphraseError if a secret was encrypted with a different passphrase; ProjectError if a required key has no
 *   value
 */
export function resolveConfig(
  project: Project,
  file: StackFile,
  crypter: Pick<Crypter, "decrypt">,
): StackConfig {
  const values = new Map<string, ConfigValue>();
  for (const [key, declared] of Object.entries(project.config)) {
    const full = fullKey(project, key);
    const isDeclaration =
      isMap(declared) && ("type" in declared || "default" in declared || "value" in declared);
    const value = isDeclaration ? (declared.value ?? declared.default) : declared;
    if (value !== undefined) {
      values.set(full, configValue(value, crypter));
    } else if (isDeclaration && !Object.keys(file.config).some((own) => fullKey(project, own) === full)) {
      throw new ProjectError(
        `The stack has no value for the configuration ${full} (declared in ${project.file}).`,
      );
    }
  }
  for (const [key, value] of Object.entries(file.config))
    values.set(fullKey(project, key), configValue(value, crypter));
  const raw = Object.fromEntries(Object.entries(file.config).map(([key, v]) => [fullKey(project, key), v]));
  return { values, raw };
}

/** Returns the configuration as properties of the default provider. Marks secret values as secrets. */
export function configProps({ values }: StackConfig): Props {
  return Object.fromEntries(
    [...values].map(([key, { text, secret: hidden }]) => [key, hidden ? secret(text) : text]),
  );
}

const fullKey = ({ name }: Project, key: string): string =>
  (key.includes(":") ? key : `${name}:${key}`).replace(/^([^:]+):config:/, "$1:");

function configValue(value: unknown, crypter: Pick<Crypter, "decrypt">): ConfigValue {
  if (isSecured(value)) return { text: crypter.decrypt(value.secure), secret: true };
  if (typeof value !== "object" || value === null) return { text: String(value ?? ""), secret: false };
  let hidden = false;
  const opened = JSON.stringify(value, (_key, item: unknown) => {
    if (!isSecured(item)) return item;
    hidden = true;
    return crypter.decrypt(item.secure);
  });
  return { text: opened, secret: hidden };
}

const isSecured = (value: unknown): value is { readonly secure: string } =>
  isMap(value) && Object.keys(value).length === 1 && typeof value.secure === "string";

interface BackendChoice {
  readonly url: string;
  /** The name of the setting or file from which the backend URL was read. */
  readonly source: string;
  /** The setting that contains the backend URL; undefined if the URL comes from `pulumi login`. */
  readonly field?: FieldPath;
}

/** Returns the directory of the Pulumi CLI: `PULUMI_HOME`, or `.pulumi` in the user's home directory. */
export const pulumiHome = (env: NodeJS.ProcessEnv): string =>
  env.PULUMI_HOME || join(homeOfUser(), ".pulumi");

/** Returns the user's home directory from the user database. Ignores the variable `HOME`, as the Pulumi CLI does. */
function homeOfUser(): string {
  try {
    return userInfo().homedir;
  } catch {
    // The user database may not contain the user, for example in a container with an arbitrary user id.
    return homedir();
  }
}

/**
 * Selects the backend from the first source that is set: `PULUMI_BACKEND_URL`, `backend.url` in Pulumi.yaml, or the
 * last `pulumi login`.
 * @throws BackendError if no backend is configured, or the credentials file of `pulumi login` cannot be read
 */
export async function chooseBackend(project: Project, env: NodeJS.ProcessEnv): Promise<BackendChoice> {
  const { PULUMI_BACKEND_URL: url } = env;
  if (url) return { url, source: "PULUMI_BACKEND_URL", field: ["PULUMI_BACKEND_URL"] };
  if (project.backendUrl) return { url: project.backendUrl, source: project.file, field: ["backend", "url"] };
  const file = join(pulumiHome(env), "credentials.json");
  const login = parseJsonFile((await readIfThere(file, BackendError)) ?? "{}", file) as {
    current?: string;
  } | null;
  if (login?.current) return { url: login.current, source: "pulumi login" };
  if (env.PULUMI_ACCESS_TOKEN) return { url: "https://api.pulumi.com", source: "PULUMI_ACCESS_TOKEN" };
  throw new BackendError("No state backend is configured.", {
    remedy:
      "Set PULUMI_BACKEND_URL (for example file://~ or file:///var/lib/state), or backend.url in Pulumi.yaml, or log in with `pulumi login`.",
  });
}

/**
 * Returns the directory of a file:// backend. In the URL, `~` stands for the home directory.
 * @throws BackendError for a URL without a scheme; UnsupportedError for other backends
 */
export function backendFolder(choice: BackendChoice, project: Project): string {
  if (!choice.url.includes("://")) {
    const url = pathToFileURL(resolve(choice.url)).href;
    throw new BackendError(`The URL of the state backend has no scheme (${choice.source}).`, {
      field: choice.field,
      remedy: `Set it to a URL such as ${url}.`,
    });
  }
  if (!choice.url.startsWith("file://")) {
    const kind = `${choice.url.split("://")[0]}:// (from ${choice.source})`;
    throw new UnsupportedError([unsupportedUse("backend", kind)]);
  }
  const path = decodeURIComponent(choice.url.slice("file://".length).split("?")[0] ?? "");
  if (path === "~") return homeOfUser();
  if (path.startsWith("~/")) return join(homeOfUser(), path.slice(2));
  return resolve(project.root, path === "" ? "." : path);
}

/**
 * Like the Pulumi CLI, requires that the directory of a file:// backend exists. Otherwise, a mistyped path would look
 * like a project without stacks, and a run would create all objects again. Subdirectories may be missing, because the
 * first run creates them. With `?create_dir=true`, the first run also creates the directory itself.
 * @throws BackendError if the directory does not exist, or is a file
 */
export async function requireBackendFolder(choice: BackendChoice, project: Project): Promise<void> {
  const folder = backendFolder(choice, project);
  const { field, source, url } = choice;
  if (new URLSearchParams(url.split("?")[1]).get("create_dir") === "true") return;
  const found = await ifThere(stat(folder)).catch(fileError("backend", "read", `${folder} (${source})`));
  if (found?.isDirectory()) return;
  throw new BackendError(
    `The folder ${folder} ${found ? "is a file" : "does not exist"}${
      source === "PULUMI_BACKEND_URL" ? "" : ` (${source})`
    }.`,
    { field, remedy: "Create the folder, or correct the URL of the state backend. Nothing was changed." },
  );
}

/**
 * Returns the backend URL of the project in a directory, with an absolute path.
 * @throws ProjectError if the directory has no Pulumi.yaml; BackendError if no backend is configured
 */
export async function backendUrlOf(folder: string, env: NodeJS.ProcessEnv): Promise<string> {
  const project = await readProject(folder);
  const choice = await chooseBackend(project, env);
  if (!choice.url.startsWith("file://")) return choice.url;
  const [path = "", ...query] = choice.url.slice("file://".length).split("?");
  if (isAbsolute(path) || path === "~" || path.startsWith("~/")) return choice.url;
  return [pathToFileURL(backendFolder(choice, project)).href, ...query].join("?");
}
