import { readdir } from "node:fs/promises";
import { registerHooks } from "node:module";
import { extname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { counted } from "../words.ts";
import { TIME_LIMIT } from "./api/index.ts";
import { type DeclaredTest, type DeclaredUntested, loading } from "./api/running.ts";

/** Subdirectory of the project directory that may contain policy tests. */
const FOLDER = "policy";
const ENDINGS = ["ts", "mts", "cts", "js", "mjs", "cjs"].map((ending) => `.policy.${ending}`);

/**
 * Returns the sorted paths of a program's policy tests, relative to the project directory. Includes `*.policy.ts` in
 * the directory and in `policy/`, and the extensions `.mts`, `.js`, `.mjs` and `.cjs`. Also includes `.cts` files,
 * which are rejected when they are loaded.
 * @throws Error if the directory cannot be read
 */
export async function policyTestFiles(folder: string): Promise<string[]> {
  const [own, below] = await Promise.all([
    readdir(folder, { withFileTypes: true }),
    readdir(join(folder, FOLDER), { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT" || error.code === "ENOTDIR") return [];
      throw error;
    }),
  ]);
  const isTest = (entry: { readonly name: string; isDirectory(): boolean }) =>
    !entry.isDirectory() && ENDINGS.some((ending) => entry.name.endsWith(ending));
  return [
    ...own.filter(isTest).map(({ name }) => name),
    ...below.filter(isTest).map(({ name }) => `${FOLDER}/${name}`),
  ].sort();
}

const PACKAGE = "@gatehouse-access/provider/policy";
const OWN_COPY = new URL(`./api/index${extname(import.meta.url)}`, import.meta.url).href;

/** The declarations of a policy file. */
export interface LoadedFile {
  readonly tests: readonly DeclaredTest[];
  readonly untested: readonly DeclaredUntested[];
  /** The error if the file could not be loaded. */
  readonly error?: unknown;
}

const loaded = new Map<string, Promise<LoadedFile>>();
let queue: Promise<unknown> = Promise.resolve();

/**
 * Loads a policy file into this process. Each file is loaded only once.
 * @param path absolute path of the file
 */
export function loadPolicyFile(path: string): Promise<LoadedFile> {
  const known = loaded.get(path);
  if (known) return known;
  if (loaded.size === 0) addHooks();
  // Loads one file at a time, so that each declared test belongs to the file that is being loaded.
  const file = queue.then(() => load(path));
  queue = file;
  loaded.set(path, file);
  return file;
}

async function load(path: string): Promise<LoadedFile> {
  const tests: DeclaredTest[] = [];
  const untested: DeclaredUntested[] = [];
  loading.file = {
    declareTest: (test) => tests.push(test),
    declareUntested: (one) => untested.push(one),
  };
  try {
    // A `.cts` file is a CommonJS module in TypeScript. Node.js does not call the hooks of `addHooks` for modules that
    // it requires, so `.cts` files are rejected.
    if (path.endsWith(".cts"))
      throw new Error("policy tests in TypeScript are ES modules; rename the file to *.policy.ts or .mts");
    await endedWithin(TIME_LIMIT, import(pathToFileURL(path).href));
    if (tests.length + untested.length === 0) throw new Error("the file declares no policyTest");
    return { tests, untested };
  } catch (error) {
    return { tests: [], untested: [], error };
  } finally {
    loading.file = undefined;
  }
}

/**
 * Makes Node.js load policy files as ES modules, regardless of the program's module type, and makes them import this
 * copy of the package.
 */
function addHooks(): void {
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier === PACKAGE) return { url: OWN_COPY, format: "module", shortCircuit: true };
      const resolved = next(specifier, context);
      if (resolved.url.endsWith(".policy.ts")) return { ...resolved, format: "module-typescript" };
      return resolved.url.endsWith(".policy.js") ? { ...resolved, format: "module" } : resolved;
    },
  });
}

/** Returns the topmost line number of a file in a call stack. */
export function lineIn(stack: string | undefined, file: string): number | undefined {
  // Call stacks contain URLs for ES modules. They contain paths for CommonJS modules and for files that cannot be
  // parsed.
  const names = [`${pathToFileURL(file).href}:`, `${file}:`];
  for (const text of (stack ?? "").split("\n")) {
    for (const name of names) {
      const at = text.indexOf(name);
      const line = at < 0 ? Number.NaN : Number.parseInt(text.slice(at + name.length), 10);
      if (line > 0) return line;
    }
  }
  return undefined;
}

export class TimeLimitError extends Error {
  override readonly name = "TimeLimitError";
}

/**
 * Waits until the work ends, at most until a time limit. The work continues after the time limit, since nothing can
 * stop it.
 * @throws TimeLimitError if the work has not ended after `seconds`
 */
export async function endedWithin<T>(seconds: number, work: T | Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    const error = new TimeLimitError(`timed out after ${counted(seconds, "second")}`);
    timer = setTimeout(() => reject(error), seconds * 1000);
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}
