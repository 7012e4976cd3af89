import type { Session } from "node:inspector";
import { createRequire, Module } from "node:module";
import { isMainThread } from "node:worker_threads";

// Loaded into the SDK's processes before their own code, to spare them work that nobody sees.
// At its start the SDK loads a TypeScript compiler and npm's resolver, which it needs only to write functions down as
// text, its own way to run the Pulumi CLI, and a debugger. Without this, `gatehouse preview` of two resources takes
// 2.0 s instead of 1.6 s, and 2.9 s of CPU instead of 2.1 s.
// The SDK also takes stack traces, which source maps translate: one at each promise, fifty for a public key, to print it
// if the promise never ends and PULUMI_DEBUG_PROMISE_LEAKS is set; and one at each resource, to tell the engine where the
// program declares it. It sends its debug messages to the engine, four for a resource, one after the other. This engine
// uses neither. Without this, `gatehouse up` of 1,000 public keys takes 30 s of CPU instead of 11 s.

/** Modules that the SDK loads at its start and most runs never use, as one file below its folder would name them. */
export const RARELY_USED = [
  "../../typescript-shim.js",
  "../../automation/index.js",
  "@npmcli/arborist",
] as const;

/** Its own entry points. Processes that these start inherit the flags of Node.js, and are left alone. */
const OF_THE_SDK = /[\\/]@pulumi[\\/]pulumi[\\/]cmd[\\/][\w-]+[\\/]index\.js$/;

for (const name of RARELY_USED) inPlaceOf(name, standIn);
inPlaceOf("../../runtime/closure/v8Hooks.js", lateHooks);

/**
 * Puts something else in the place of a module of the SDK, in the SDK's processes alone.
 * @param name as a file one below the SDK's folder of entry points would name it
 * @param stand makes what takes its place; `load` gives the exports of the module itself
 */
function inPlaceOf(name: string, stand: (load: () => object) => object): void {
  const [, script] = process.argv;
  if (!isMainThread || script === undefined || !OF_THE_SDK.test(script)) return;
  const require = createRequire(script);
  const file = resolved(require, name);
  if (file === undefined || require.cache[file]) return;
  const entry = new Module(file);
  entry.loaded = true;
  entry.exports = stand(() => {
    // While it is being loaded, modules in a circle with it may look at it once more.
    if (require.cache[file] === entry) delete require.cache[file];
    return require(file);
  });
  require.cache[file] = entry;
}

/** Undefined where this version of the SDK has no such module. */
function resolved(require: NodeJS.Require, name: string): string | undefined {
  try {
    return require.resolve(name);
  } catch {
    return undefined;
  }
}

/**
 * Stands for a module's exports before the module is loaded: `load` is called when they are first looked at. Only a
 * comparison by identity sees a difference.
 */
export function standIn(load: () => object): object {
  let loaded: object | undefined;
  const real = (): object => {
    loaded ??= load();
    return loaded;
  };
  // A bound function can be called and made with `new`, and has no property that a proxy would have to show.
  const target = Object.bind(undefined);
  return new Proxy(target, {
    // Compiled imports ask for this mark at once, and copy all properties of a module that lacks it.
    get: (_target, key) => (key === "__esModule" && !loaded ? true : Reflect.get(real(), key)),
    set: (_target, key, value) => Reflect.set(real(), key, value),
    has: (_target, key) => Reflect.has(real(), key),
    deleteProperty: (_target, key) => Reflect.deleteProperty(real(), key),
    ownKeys: () => Reflect.ownKeys(real()),
    getOwnPropertyDescriptor(_target, key) {
      const found = Reflect.getOwnPropertyDescriptor(real(), key);
      // A proxy may say of no property that it stays, unless its target has it.
      return found && { ...found, configurable: true };
    },
    defineProperty: (_target, key, descriptor) => Reflect.defineProperty(real(), key, descriptor),
    getPrototypeOf: () => Reflect.getPrototypeOf(real()),
    apply: (_target, self, args) => Reflect.apply(real() as never, self, args),
    construct: (_target, args, made) => Reflect.construct(real() as never, args, made),
  });
}

/**
 * In place of the SDK's module v8Hooks, which keeps a debugger on from the start, to learn for messages in which file a
 * function was written. This one begins when it is asked for: V8 then tells of the scripts that were loaded before too.
 */
function lateHooks(load: () => object): object {
  const urls = new Map<string, string>();
  let session: Promise<Session> | undefined;
  const begin = async (): Promise<Session> => {
    // Loaded here: most runs need none.
    const begun = new (process.getBuiltinModule("node:inspector").Session)();
    begun.connect();
    begun.on("Debugger.scriptParsed", ({ params }) => urls.set(params.scriptId, params.url));
    await new Promise<void>((resolve, reject) => {
      begun.post("Debugger.enable", (error) => (error ? reject(error) : resolve()));
    });
    return begun;
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
  // Exports that other versions of the module have come from itself.
  return Object.setPrototypeOf(hooks, standIn(load)) as object;
}

/** The modules of the SDK that are changed, as a file one below the folder of its entry points would name them. */
export const CHANGED = {
  messages: "../../log/index.js",
  promises: "../../runtime/debuggable.js",
  resources: "../../resource.js",
} as const;

inPlaceOf(CHANGED.messages, (load) => standIn(() => withoutDebugMessages(load())));
inPlaceOf(CHANGED.resources, (load) => standIn(() => withoutPositions(load())));
if (!process.env.PULUMI_DEBUG_PROMISE_LEAKS) {
  inPlaceOf(CHANGED.promises, (load) => standIn(() => withoutTraces(load())));
}

/** Patches the SDK's module of messages: debug messages are not sent. */
export function withoutDebugMessages<M extends object>(messages: M): M {
  return Object.assign(messages, { debug: async () => {} });
}

/** Patches the SDK's module of resources: it does not look for the lines that declare them. */
export function withoutPositions<M extends { Resource?: { stackTrace?(skip: number): unknown } }>(
  resources: M,
): M {
  const { Resource } = resources;
  if (Resource?.stackTrace) Resource.stackTrace = () => [];
  return resources;
}

/** Patches the SDK's module of watched promises: it records no stack trace. The SDK still knows which never end. */
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
