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

export interface ImportRun {
  /** The program's folder, with the settings of the stack. */
  readonly folder: string;
  readonly project: string;
  readonly stack: string;
  /** Address of the backend that gets the state; undefined for none, so that {@link Imported.deployment} is made. */
  readonly backend: string | undefined;
  readonly resources: readonly ImportedResource[];
  /** Environment of the program; it names service and credential. */
  readonly env: NodeJS.ProcessEnv;
  readonly onEvent: (event: EngineEvent) => void;
}

export interface Imported {
  readonly preview: Plan;
  /** The state as `pulumi stack import` takes it. Of what was imported no secret is known, so it holds none. */
  readonly deployment: unknown;
}

const ENTRY = ".gatehouse-import.cjs";

/** Every resource becomes the object that it is declared as, by the option `import`, which no program keeps. */
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
 * Makes the state of a program whose resources are objects that are there already: runs it once, with every resource
 * imported. The engine compares each object with what the program declares, and nothing is written to the service.
 * Always by the embedded engine: the Pulumi CLI imports no dynamic resources; it goes on with the state.
 * @throws what opening a stack and running it throw; UpdateFailedError also where an object is not as declared
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
    return { preview, deployment: await deploymentOf(later) };
  } finally {
    await rm(entry, { force: true });
    await rm(temporary, { recursive: true, force: true });
  }
}

/** An up would delete what the program does not declare. @throws EngineError (`import`) where the stack has resources */
async function requireEmpty(stack: Stack): Promise<void> {
  if ((await stack.resources()).length === 0) return;
  throw new EngineError(
    "import",
    `the stack ${stack.stack} of the project ${stack.project} has resources already; name another with --stack, or another project with --project`,
  );
}

/** @throws EngineError (`import`) naming what the program did not declare when it ran */
function requireAll(resources: readonly ImportedResource[], { steps }: Result): void {
  const done = new Set(steps.map(({ type, name }) => `${type}::${name}`));
  const missing = resources.filter(({ type, name }) => !done.has(`${type}::${name}`));
  if (missing.length === 0) return;
  const names = missing.slice(0, 5).map(({ name }) => name);
  throw new EngineError(
    "import",
    `${missing.length} resources of the written program were not declared when it ran: ${names.join(", ")}; the state is not whole`,
  );
}

/** Where the state goes, and the environment to read and write it. */
interface Place {
  readonly backend: string;
  readonly settings: string;
  readonly env: NodeJS.ProcessEnv;
}

/** The user's own backend; else one for the time of the run, with a passphrase of its own. */
async function placeOf(
  { backend, stack, env }: ImportRun,
  folder: string,
  temporary: string,
): Promise<Place> {
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

/** Opens the stack with the program's file or folder as `main`. */
async function opened(
  { project, stack, onEvent }: ImportRun,
  folder: string,
  main: string,
  { backend, settings, env }: Place,
): Promise<Stack> {
  await mkdir(folder);
  const file = { name: project, runtime: "nodejs", main, stackConfigDir: settings };
  await writeFile(join(folder, "Pulumi.yaml"), stringify(file));
  return openStack({
    ...{ folder, stack, engine: "embedded", onEvent },
    env: { ...env, PULUMI_BACKEND_URL: backend },
  });
}

async function deploymentOf(stack: Stack): Promise<unknown> {
  const resources = await plain(await stack.resources(), (text) => stack.decrypt(text));
  const manifest = { time: new Date().toISOString(), magic: "", version: "" };
  return { version: 3, deployment: { manifest, resources } };
}

/**
 * The value with the secrets of imported objects, which nobody knows and which are empty, as the plain values that they
 * are: an import of a state by the Pulumi CLI has no key for secrets of a state that names none.
 * @throws Error where one is not empty
 */
async function plain(value: unknown, decrypt: (text: string) => Promise<string>): Promise<unknown> {
  if (Array.isArray(value)) return Promise.all(value.map((item) => plain(item, decrypt)));
  if (typeof value !== "object" || value === null) return value;
  const { [SIGNATURE]: signature, ciphertext } = value as Readonly<Record<string, unknown>>;
  if (signature === SECRET && typeof ciphertext === "string") {
    if ((await decrypt(ciphertext)) === '""') return "";
    throw new Error("an imported object has a secret");
  }
  const entries = Object.entries(value).map(
    async ([key, item]) => [key, await plain(item, decrypt)] as const,
  );
  return Object.fromEntries(await Promise.all(entries));
}

/** Whether a program's folder finds the packages that it imports. */
export function hasPackages(folder: string): boolean {
  const { resolve: find } = createRequire(join(resolve(folder), "index.js"));
  try {
    for (const name of ["@pulumi/pulumi", "@gatehouse-access/provider"]) find(name);
    return true;
  } catch {
    return false;
  }
}
