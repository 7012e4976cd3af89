import type { Session } from "node:inspector";
import { createRequire, Module } from "node:module";
import { isMainThread } from "node:worker_threads";
import { failureMessage, failuresOf } from "./programFailure.ts";

// Patches the Pulumi SDK to skip work that this engine does not need. The processes of the SDK load this module first.
// At its start, the SDK loads a TypeScript compiler and the package resolver of npm, which it needs only to serialize
// functions. The SDK also loads the Automation API, a debugger, and the exporters of traces. With this module,
// `gatehouse preview` of two resources takes 1.6 s instead of 2.0 s, and 2.1 s of CPU time instead of 2.9 s. The SDK
// records a stack trace for each promise, and creates fifty promises for a public key. The SDK prints these traces only
// if `PULUMI_DEBUG_PROMISE_LEAKS` is set and a promise never settles. The SDK also records a stack trace for each
// resource, to report the position of the declaration to the engine. The SDK translates all these traces with source
// maps. For each resource, the SDK sends four debug messages to the engine. This engine uses neither stack traces nor
// debug messages. With this module, `gatehouse up` of 1,000 public keys takes 11 s of CPU time instead of 30 s. The
// module also makes the SDK report an error of the program as data, so that the engine can print the position of the
// error.

/**
 * Modules that the SDK loads at its start but rarely uses, as paths relative to the SDK's directory of entry points.
 */
export const RARELY_USED = [
  "../../typescript-shim.js",
  "../../automation/index.js",
  "@npmcli/arborist",
] as const;

/**
 * Matches the entry points of the SDK. Child processes of these entry points inherit the Node.js flags, but this module
 * does not patch the scripts of child processes.
 */
const OF_THE_SDK = /[\\/]@pulumi[\\/]pulumi[\\/]cmd[\\/][\w-]+[\\/]index\.js$/;

/**
 * Returns the entry point of the SDK that this process runs. Returns undefined if the process runs a different script.
 */
function sdkScript(): string | undefined {
  const [, script] = process.argv;
  return isMainThread && script !== undefined && OF_THE_SDK.test(script) ? script : undefined;
}

for (const name of RARELY_USED) replaceModule(name, standIn);
replaceModule("../../runtime/closure/v8Hooks.js", lateHooks);

/**
 * Replaces the exports of an SDK module. Has no effect if the process runs a script that is not part of the SDK.
 * @param name path of the module, relative to the SDK's directory of entry points
 * @param create returns the new exports; its argument `load` returns the original exports, and `require` loads modules
 *   as the SDK does
 */
function replaceModule(name: string, create: (load: () => object, require: NodeJS.Require) => object): void {
  const script = sdkScript();
  if (script === undefined) return;
  const require = createRequire(script);
  const file = resolved(require, name);
  if (file === undefined || require.cache[file]) return;
  const entry = new Module(file);
  entry.loaded = true;
  entry.exports = create(() => {
    // Removes the replacement from the module cache before it loads the original. In an import cycle, other modules may
    // require the original again while it is loading. These modules must not receive the replacement.
    if (require.cache[file] === entry) delete require.cache[file];
    return require(file);
  }, require);
  require.cache[file] = entry;
}

/**
 * Returns the path of an SDK module. Returns undefined if the installed version of the SDK does not contain the module.
 */
function resolved(require: NodeJS.Require, name: string): string | undefined {
  try {
    return require.resolve(name);
  } catch {
    return undefined;
  }
}

/**
 * Returns a proxy of a module's exports. The first access to the proxy calls `load` to load the module. The proxy
 * behaves like the exports, except that `proxy === exports` is false.
 */
export function standIn(load: () => object): object {
  let loaded: object | undefined;
  const real = (): object => {
    loaded ??= load();
    return loaded;
  };
  // The proxy's target must be a function, because otherwise the proxy would not support calls and `new`. A bound
  // function has no non-configurable properties, which the proxy would have to report.
  const target = Object.bind(undefined);
  return new Proxy(target, {
    // Compiled imports read `__esModule` immediately. If it is not true, they copy all properties, which would load the
    // module.
    get: (_target, key) => (key === "__esModule" && !loaded ? true : Reflect.get(real(), key)),
    set: (_target, key, value) => Reflect.set(real(), key, value),
    has: (_target, key) => Reflect.has(real(), key),
    deleteProperty: (_target, key) => Reflect.deleteProperty(real(), key),
    ownKeys: () => Reflect.ownKeys(real()),
    getOwnPropertyDescriptor(_target, key) {
      const found = Reflect.getOwnPropertyDescriptor(real(), key);
      // A proxy may report a property as non-configurable only if the target of the proxy has the property.
      return found && { ...found, configurable: true };
    },
    defineProperty: (_target, key, descriptor) => Reflect.defineProperty(real(), key, descriptor),
    getPrototypeOf: () => Reflect.getPrototypeOf(real()),
    apply: (_target, self, args) => Reflect.apply(real() as never, self, args),
    construct: (_target, args, newTarget) => Reflect.construct(real() as never, args, newTarget),
  });
}

/**
 * Replaces the SDK's module `v8Hooks`. The original enables a debugger at the start, because error messages of the SDK
 * may contain the file of a function. The replacement enables the debugger at its first use. V8 then also reports the
 * scripts that were loaded earlier.
 */
function lateHooks(load: () => object): object {
  const urls = new Map<string, string>();
  let session: Promise<Session> | undefined;
  const begin = async (): Promise<Session> => {
    // The inspector module is loaded here, since most runs do not need the module.
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
  // All exports that this replacement does not define come from the original module.
  return Object.setPrototypeOf(hooks, standIn(load)) as object;
}

/** The module of the SDK that creates and exports spans. */
export interface Tracing {
  start(destination: string): void;
  stop(): void;
  newSpan(name: string): unknown;
}

/** The functions of `@opentelemetry/api` that create a span. */
interface TraceApi {
  readonly trace: { getTracer(name: string): { startSpan(name: string): unknown } };
}

/** Modules of the SDK for tracing, as paths relative to the SDK's directory of entry points. */
export const TRACES = { tracing: "../run/tracing.js", api: "@opentelemetry/api" } as const;

replaceModule(TRACES.tracing, (load, require) =>
  lateTracing(
    () => load() as Tracing,
    () => require(TRACES.api) as TraceApi,
  ),
);

/**
 * Replaces the SDK's tracing module. The original loads the exporters at the start, although spans are exported only
 * with the option `--tracing`. The replacement loads the original when the export starts. Until then, the tracer that
 * is registered in the process creates the spans. If no tracer is registered, the spans have no effect.
 */
export function lateTracing(load: () => Tracing, api: () => TraceApi): Tracing {
  let exporting: Tracing | undefined;
  const tracing = {
    __esModule: true,
    start(destination: string) {
      exporting = load();
      exporting.start(destination);
    },
    stop: () => exporting?.stop(),
    newSpan: (name: string) =>
      exporting ? exporting.newSpan(name) : api().trace.getTracer("nodejs-runtime").startSpan(name),
  };
  // All exports that this replacement does not define come from the original module.
  return Object.setPrototypeOf(tracing, standIn(load)) as Tracing;
}

/** Modules of the SDK that this module patches, as paths relative to the SDK's directory of entry points. */
export const CHANGED = {
  messages: "../../log/index.js",
  promises: "../../runtime/debuggable.js",
  resources: "../../resource.js",
} as const;

// The handlers must be observed before the SDK loads its log module, because the SDK adds its first handlers earlier.
const reported = sdkScript() === undefined ? () => undefined : reportedThrow();
replaceModule(CHANGED.messages, (load) =>
  standIn(() => withFailures(withoutDebugMessages(load()), reported)),
);
replaceModule(CHANGED.resources, (load) => standIn(() => withoutPositions(load())));
if (!process.env.PULUMI_DEBUG_PROMISE_LEAKS) {
  replaceModule(CHANGED.promises, (load) => standIn(() => withoutTraces(load())));
}

/** Patches the SDK's log module, so that the SDK sends no debug messages. */
export function withoutDebugMessages<M extends object>(messages: M): M {
  return Object.assign(messages, { debug: async () => {} });
}

/** The SDK's module that converts an error to a string, as a path relative to the SDK's directory of entry points. */
export const ERROR_TEXT = "../run/error.js";

// The SDK formats an error with all its properties, even for a trace that is not exported. Formatting takes a minute if
// the error refers to a resource. Instead of the formatted error, the engine prints the data of `withFailures`.
replaceModule(ERROR_TEXT, () => ({
  __esModule: true,
  defaultErrorMessage: (thrown: unknown) => (thrown instanceof Error ? thrown.message : String(thrown)),
}));

/**
 * Returns the thrown value that the SDK is reporting. Returns undefined if the SDK is not reporting a thrown value.
 */
type ReportedThrow = () => { readonly thrown: unknown } | undefined;

/** Observes the values that the SDK's handlers of uncaught exceptions and unhandled rejections receive. */
function reportedThrow(): ReportedThrow {
  let current: { readonly thrown: unknown } | undefined;
  const observed = new Set<string | symbol>();
  const remember = (thrown: unknown): void => {
    current = { thrown };
    // The SDK's handler logs the error synchronously. So the error is only stored until the handler returns.
    queueMicrotask(() => {
      current = undefined;
    });
  };
  // A handler changes the behavior of Node.js. So this handler is only added when the SDK adds its own handler, and
  // runs before that handler.
  process.on("newListener", (event) => {
    if (!["uncaughtException", "unhandledRejection"].includes(String(event)) || observed.has(event)) return;
    observed.add(event);
    process.on(event as "uncaughtException", remember);
  });
  return () => current;
}

/**
 * Patches the SDK's log module, so that the SDK logs an error of the program as data. The original logs a string with
 * terminal colors and a call stack.
 */
function withFailures<M extends object>(messages: M, reported: ReportedThrow): M {
  const { error } = messages as { error?(message: string, ...rest: unknown[]): unknown };
  if (!error) return messages;
  return Object.assign(messages, {
    error(message: string, ...rest: unknown[]): unknown {
      const current = reported();
      return error(current ? failureMessage(failuresOf(current.thrown)) : message, ...rest);
    },
  });
}

/** Patches the SDK's resource module, so that the SDK does not look up the source lines that declare resources. */
export function withoutPositions<M extends { Resource?: { stackTrace?(skip: number): unknown } }>(
  resources: M,
): M {
  const { Resource } = resources;
  if (Resource?.stackTrace) Resource.stackTrace = () => [];
  return resources;
}

/**
 * Patches the SDK's promise module, so that the SDK records no stack traces. The SDK still detects unsettled promises.
 */
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
