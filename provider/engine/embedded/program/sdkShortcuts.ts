import type { Session } from "node:inspector";
import { createRequire, Module } from "node:module";
import { isMainThread } from "node:worker_threads";

// The SDK's processes load this module first. It removes work of the SDK that this engine does not need.
// At its start the SDK loads a TypeScript compiler and npm's resolver, which it needs only to serialize functions. It
// also loads its Automation API and a debugger. Without this module, `gatehouse preview` of two resources takes 2.0 s
// instead of 1.6 s, and 2.9 s of CPU instead of 2.1 s.
// The SDK also takes stack traces and translates them with source maps. It takes a trace for each promise, fifty for a
// public key, to print it if the promise never settles and PULUMI_DEBUG_PROMISE_LEAKS is set. It takes a trace for each
// resource, to report the position of its declaration to the engine. It sends its debug messages to the engine, four
// for a resource, one after the other. This engine uses neither traces nor debug messages. Without this module,
// `gatehouse up` of 1,000 public keys takes 30 s of CPU instead of 11 s.

/** Modules that the SDK loads at its start but rarely uses, as paths relative to its directory of entry points. */
export const RARELY_USED = [
  "../../typescript-shim.js",
  "../../automation/index.js",
  "@npmcli/arborist",
] as const;

/** Entry points of the SDK. Other processes inherit the Node.js flags from them, but are not changed. */
const OF_THE_SDK = /[\\/]@pulumi[\\/]pulumi[\\/]cmd[\\/][\w-]+[\\/]index\.js$/;

for (const name of RARELY_USED) replaceModule(name, standIn);
replaceModule("../../runtime/closure/v8Hooks.js", lateHooks);

/**
 * Replaces the exports of a module of the SDK, only in the SDK's processes.
 * @param name path of the module, relative to the SDK's directory of entry points
 * @param create returns the new exports; its argument `load` returns the original exports
 */
function replaceModule(name: string, create: (load: () => object) => object): void {
  const [, script] = process.argv;
  if (!isMainThread || script === undefined || !OF_THE_SDK.test(script)) return;
  const require = createRequire(script);
  const file = resolved(require, name);
  if (file === undefined || require.cache[file]) return;
  const entry = new Module(file);
  entry.loaded = true;
  entry.exports = create(() => {
    // While the module is loading, modules in an import cycle with it may require it again.
    if (require.cache[file] === entry) delete require.cache[file];
    return require(file);
  });
  require.cache[file] = entry;
}

/** Returns the path of a module; undefined if this version of the SDK does not have it. */
function resolved(require: NodeJS.Require, name: string): string | undefined {
  try {
    return require.resolve(name);
  } catch {
    return undefined;
  }
}

/**
 * Returns a proxy of a module's exports that calls `load` at the first access. Only a comparison by identity reveals
 * the proxy.
 */
export function standIn(load: () => object): object {
  let loaded: object | undefined;
  const real = (): object => {
    loaded ??= load();
    return loaded;
  };
  // A bound function can be called and used with `new`, and has no property that the proxy would have to report.
  const target = Object.bind(undefined);
  return new Proxy(target, {
    // Compiled imports read this marker immediately, and copy all properties of a module without it.
    get: (_target, key) => (key === "__esModule" && !loaded ? true : Reflect.get(real(), key)),
    set: (_target, key, value) => Reflect.set(real(), key, value),
    has: (_target, key) => Reflect.has(real(), key),
    deleteProperty: (_target, key) => Reflect.deleteProperty(real(), key),
    ownKeys: () => Reflect.ownKeys(real()),
    getOwnPropertyDescriptor(_target, key) {
      const found = Reflect.getOwnPropertyDescriptor(real(), key);
      // A proxy must not report a property as non-configurable unless its target has the property.
      return found && { ...found, configurable: true };
    },
    defineProperty: (_target, key, descriptor) => Reflect.defineProperty(real(), key, descriptor),
    getPrototypeOf: () => Reflect.getPrototypeOf(real()),
    apply: (_target, self, args) => Reflect.apply(real() as never, self, args),
    construct: (_target, args, newTarget) => Reflect.construct(real() as never, args, newTarget),
  });
}

/**
 * Replaces the SDK's module v8Hooks, which enables a debugger at the start to find the file of a function for messages.
 * This version enables the debugger on demand. V8 then also reports the scripts that were loaded earlier.
 */
function lateHooks(load: () => object): object {
  const urls = new Map<string, string>();
  let session: Promise<Session> | undefined;
  const begin = async (): Promise<Session> => {
    // The module is loaded here, since most runs do not need it.
    const started = new (process.getBuiltinModule("node:inspector").Session)();
    started.connect();
    started.on("Debugger.scriptParsed", ({ params }) => urls.set(params.scriptId, params.url));
    await new Promise<void>((resolve, reject) => {
      started.post("Debugger.enable", (error) => (error ? reject(error) : resolve()));
    });
    return started;
  };
  const hooks = {
    __esModule: true,
    isInitializedAsync: async () => {},
    getSessionAsync() {
      session ??= begin();
      return session;
    },
    getScriptUrl: (id: string) => urls.get(id),
  };
  // Additional exports in other versions of the module come from the original module.
  return Object.setPrototypeOf(hooks, standIn(load)) as object;
}

/** Modules of the SDK that are patched, as paths relative to its directory of entry points. */
export const CHANGED = {
  messages: "../../log/index.js",
  promises: "../../runtime/debuggable.js",
  resources: "../../resource.js",
} as const;

replaceModule(CHANGED.messages, (load) => standIn(() => withoutDebugMessages(load())));
replaceModule(CHANGED.resources, (load) => standIn(() => withoutPositions(load())));
if (!process.env.PULUMI_DEBUG_PROMISE_LEAKS) {
  replaceModule(CHANGED.promises, (load) => standIn(() => withoutTraces(load())));
}

/** Patches the SDK's log module, so that it does not send debug messages. */
export function withoutDebugMessages<M extends object>(messages: M): M {
  return Object.assign(messages, { debug: async () => {} });
}

/** Patches the SDK's resource module, so that it does not search the lines that declare resources. */
export function withoutPositions<M extends { Resource?: { stackTrace?(skip: number): unknown } }>(
  resources: M,
): M {
  const { Resource } = resources;
  if (Resource?.stackTrace) Resource.stackTrace = () => [];
  return resources;
}

/** Patches the SDK's promise module, so that it records no stack traces. The SDK still detects unsettled promises. */
export function withoutTraces<M extends { debuggablePromise?(promise: unknown): unknown }>(promises: M): M {
  const { debuggablePromise } = promises;
  if (!debuggablePromise) return promises;
  return Object.assign(promises, {
    debuggablePromise(promise: unknown): unknown {
      const { stackTraceLimit } = Error;
      Error.stackTraceLimit = 0;
      try {
        return debuggablePromise(promise);
      } finally {
        Error.stackTraceLimit = stackTraceLimit;
      }
    },
  });
}
