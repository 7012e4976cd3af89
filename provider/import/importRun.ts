import { randomUUID } from "node:crypto";
import { copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { stringify } from "yaml";
import {
  EngineError,
  type EngineEvent,
  openStack,
  type Plan,
  type Result,
  type Stack,
  stackFilePath,
} from "../engine/index.ts";
import { SECRET, SIGNATURE } from "../engineMarks.ts";
import type { ImportedResource } from "./model.ts";

interface ImportRun {
  /** Directory of the program. It also contains the settings of the stack. */
  readonly folder: string;
  readonly project: string;
  readonly stack: string;
  /**
   * URL of the backend in which the import stores the state. If undefined, the state is returned only in {@link
   * Imported.deployment}.
   */
  readonly backend: string | undefined;
  readonly resources: readonly ImportedResource[];
  /** Environment variables of the program, including the service address and the credential. */
  readonly env: NodeJS.ProcessEnv;
  readonly onEvent: (event: EngineEvent) => void;
}

interface Imported {
  readonly preview: Plan;
  /**
   * The state in the format of `pulumi stack import`. Each secret is replaced by an empty string. Undefined if the
   * backend stores the state.
   */
  readonly deployment: unknown;
}

const ENTRY = ".gatehouse-import.cjs";

/**
 * A wrapper program that runs the user's program and adds the option `import` to all resources, so that the user's
 * program does not contain the option.
 */
const PROGRAM = `const { readFileSync } = require("node:fs");
const { runtime } = require("@pulumi/pulumi");

const ids = new Map(JSON.parse(readFileSync(process.env.GATEHOUSE_IMPORT_IDS, "utf8")));
runtime.registerStackTransformation(({ type, name, props, opts }) => {
  const id = ids.get(type + "::" + name);
  return id === undefined ? undefined : { props, opts: { ...opts, import: id } };
});
module.exports = require("./index");
`;

/**
 * Creates the state of a program that declares existing objects. Runs the program once and imports all resources. The
 * engine compares each object with the declaration of its resource, and changes nothing on the service. The run always
 * uses the embedded engine, since the Pulumi CLI cannot import dynamic resources. Afterwards, the Pulumi CLI can use
 * the state.
 * @throws the errors of opening and running a stack; UpdateFailedError if an object differs from its declaration
 */
export async function importState(run: ImportRun): Promise<Imported> {
  const folder = resolve(run.folder);
  const temporary = await mkdtemp(join(tmpdir(), "gatehouse-import-"));
  const entry = join(folder, ENTRY);
  try {
    const ids = join(temporary, "ids.json");
    const list = run.resources.map(({ type, name, id }) => [`${type}::${name}`, id]);
    await writeFile(ids, JSON.stringify(list));
    await writeFile(entry, PROGRAM);
    const place = await placeOf(run, folder, temporary);
    const importing = await opened(run, join(temporary, "import"), entry, {
      ...place,
      env: { ...place.env, GATEHOUSE_IMPORT_IDS: ids },
    });
    await requireEmpty(importing);
    requireAll(run.resources, await importing.up({ skipPreview: true }));
    const later = await opened(run, join(temporary, "later"), folder, place);
    const preview = await later.preview({ create: false });
    return { preview, deployment: run.backend === undefined ? await deploymentOf(later) : undefined };
  } finally {
    await rm(entry, { force: true });
    await rm(temporary, { recursive: true, force: true });
  }
}

/**
 * Checks that the stack is empty, since `up` would delete resources that the program does not declare.
 * @throws EngineError (`import`) if the stack has resources
 */
async function requireEmpty(stack: Stack): Promise<void> {
  if ((await stack.resources()).length === 0) return;
  throw new EngineError(
    "import",
    `the stack ${stack.stack} of the project ${stack.project} already has resources; use another stack (--stack) or project (--project)`,
  );
}

/**
 * Checks that the program declared all resources.
 * @throws EngineError (`import`) with a list of the resources that the program did not declare
 */
function requireAll(resources: readonly ImportedResource[], { steps }: Result): void {
  const done = new Set(steps.map(({ type, name }) => `${type}::${name}`));
  const missing = resources.filter(({ type, name }) => !done.has(`${type}::${name}`));
  if (missing.length === 0) return;
  const names = missing.slice(0, 5).map(({ name }) => name);
  throw new EngineError(
    "import",
    `${missing.length} resources of the written program were not declared when it ran: ${names.join(", ")}; the state is incomplete`,
  );
}

/** The location of the state, and the environment variables that give access to it. */
interface StateLocation {
  readonly backend: string;
  readonly settings: string;
  readonly env: NodeJS.ProcessEnv;
}

/** Returns the user's backend. If the user has none, returns a temporary backend with a random passphrase. */
async function placeOf(
  { backend, stack, env }: ImportRun,
  folder: string,
  temporary: string,
): Promise<StateLocation> {
  if (backend !== undefined) return { backend, settings: folder, env };
  const settings = join(temporary, "settings");
  const states = join(temporary, "states");
  await Promise.all([mkdir(settings), mkdir(states)]);
  await copyFile(
    stackFilePath({ configFolder: folder }, stack),
    stackFilePath({ configFolder: settings }, stack),
  );
  const { PULUMI_CONFIG_PASSPHRASE_FILE: _file, ...others } = env;
  return {
    backend: pathToFileURL(states).href,
    settings,
    env: { ...others, PULUMI_CONFIG_PASSPHRASE: randomUUID() },
  };
}

/** Creates a Pulumi project whose `main` is the program's file or directory, and opens the stack in this project. */
async function opened(
  { project, stack, onEvent }: ImportRun,
  folder: string,
  main: string,
  { backend, settings, env }: StateLocation,
): Promise<Stack> {
  await mkdir(folder);
  const file = { name: project, runtime: "nodejs", main, stackConfigDir: settings };
  await writeFile(join(folder, "Pulumi.yaml"), stringify(file));
  return openStack({
    folder,
    stack,
    engine: "embedded",
    onEvent,
    env: { ...env, PULUMI_BACKEND_URL: backend },
  });
}

async function deploymentOf(stack: Stack): Promise<unknown> {
  const resources = withoutSecrets(await stack.resources());
  const manifest = { time: new Date().toISOString(), magic: "", version: "" };
  return { version: 3, deployment: { manifest, resources } };
}

/**
 * Replaces the secrets of imported objects by empty strings. Only install keys have secrets that the service returns.
 * The state contains no secrets provider, so the Pulumi CLI could not decrypt secrets in the state.
 */
function withoutSecrets(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutSecrets);
  if (typeof value !== "object" || value === null) return value;
  if ((value as Readonly<Record<string, unknown>>)[SIGNATURE] === SECRET) return "";
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withoutSecrets(item)]));
}

/**
 * Returns true if the packages that an imported program needs are installed. @param folder directory of the program
 */
export function hasPackages(folder: string): boolean {
  const { resolve: find } = createRequire(join(resolve(folder), "index.js"));
  try {
    for (const name of ["@pulumi/pulumi", "@gatehouse-access/provider"]) find(name);
    return true;
  } catch {
    return false;
  }
}
