import { registerHooks } from "node:module";
import { extname } from "node:path";
import { pathToFileURL } from "node:url";
import { endedWithin } from "./timeLimit.ts";
import { TIME_LIMIT } from "./written/policyTest.ts";
import { type DeclaredTest, loading } from "./written/running.ts";

/** How policy tests import what they are written with. */
const PACKAGE = "@gatehouse-access/provider/policy";
const OWN_COPY = new URL(`./written/index${extname(import.meta.url)}`, import.meta.url).href;

/** A file with policy tests, as it was loaded. */
export interface LoadedFile {
  readonly tests: readonly DeclaredTest[];
  /** Why it could not be loaded, if so. */
  readonly error?: unknown;
}

const loaded = new Map<string, Promise<LoadedFile>>();
let queue: Promise<unknown> = Promise.resolve();

/**
 * Loads a policy file, in this process: once, as Node.js loads modules once.
 * @param path absolute
 */
export function loadPolicyFile(path: string): Promise<LoadedFile> {
  const known = loaded.get(path);
  if (known) return known;
  if (loaded.size === 0) addHooks();
  // One after another, so that it is clear whose the tests are.
  const file = queue.then(() => load(path));
  queue = file;
  loaded.set(path, file);
  return file;
}

async function load(path: string): Promise<LoadedFile> {
  // Node.js does not ask hooks about what CommonJS in TypeScript requires.
  if (path.endsWith(".cts")) {
    return {
      tests: [],
      error: new Error("policy tests in TypeScript are ES modules: name it *.policy.ts or .mts"),
    };
  }
  const tests: DeclaredTest[] = [];
  loading.declare = (test) => tests.push(test);
  try {
    await endedWithin(TIME_LIMIT, import(pathToFileURL(path).href));
  } catch (error) {
    return { tests: [], error };
  } finally {
    loading.declare = undefined;
  }
  if (tests.length === 0) return { tests, error: new Error("it declares no policyTest") };
  return { tests };
}

/**
 * Policy tests are ES modules whatever the program beside them is, and are written with this very copy of the package,
 * wherever they are.
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
