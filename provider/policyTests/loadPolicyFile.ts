import { registerHooks } from "node:module";
import { extname } from "node:path";
import { pathToFileURL } from "node:url";
import { endedWithin } from "./timeLimit.ts";
import { TIME_LIMIT } from "./written/policyTest.ts";
import { type DeclaredTest, loading } from "./written/running.ts";

/** The name by which policy tests import `expect` and `policyTest`. */
const PACKAGE = "@gatehouse-access/provider/policy";
const OWN_COPY = new URL(`./written/index${extname(import.meta.url)}`, import.meta.url).href;

/** A policy file that was loaded. */
export interface LoadedFile {
  readonly tests: readonly DeclaredTest[];
  /** Why it could not be loaded; undefined where it was. */
  readonly error?: unknown;
}

const loaded = new Map<string, Promise<LoadedFile>>();
let queue: Promise<unknown> = Promise.resolve();

/**
 * Loads a policy file into this process: once, as Node.js loads each module once.
 * @param path absolute
 */
export function loadPolicyFile(path: string): Promise<LoadedFile> {
  const known = loaded.get(path);
  if (known) return known;
  if (loaded.size === 0) addHooks();
  // One after another, so that each test is known to be of the file that is being loaded.
  const file = queue.then(() => load(path));
  queue = file;
  loaded.set(path, file);
  return file;
}

async function load(path: string): Promise<LoadedFile> {
  const tests: DeclaredTest[] = [];
  loading.declare = (test) => tests.push(test);
  try {
    // Node.js does not call the hooks for modules that CommonJS in TypeScript requires.
    if (path.endsWith(".cts"))
      throw new Error("policy tests in TypeScript are ES modules: name it *.policy.ts or .mts");
    await endedWithin(TIME_LIMIT, import(pathToFileURL(path).href));
    if (tests.length === 0) throw new Error("it declares no policyTest");
    return { tests };
  } catch (error) {
    return { tests: [], error };
  } finally {
    loading.declare = undefined;
  }
}

/**
 * Makes policy files ES modules, whatever the program beside them is, and makes all of them, wherever they are, import
 * this copy of the package.
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
