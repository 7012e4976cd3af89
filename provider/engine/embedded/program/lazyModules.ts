// Loaded into the SDK's processes before their own code. At its start the SDK loads a TypeScript compiler and npm's
// resolver, which it needs only to write functions down as text, its own way to run the Pulumi CLI, what sends traces,
// and a debugger; that takes longer than all else of most runs.
import { createRequire, Module } from "node:module";
import { isMainThread } from "node:worker_threads";
import { lateHooks } from "./lateHooks.ts";
import { standIn, standInOfEach } from "./standIn.ts";

/** Modules that the SDK loads at its start and most runs never use, as one file below its folder would name them. */
export const RARELY_USED = [
  "../../typescript-shim.js",
  "../../automation/index.js",
  "@npmcli/arborist",
] as const;

/** The same of which it takes single exports at once, all of them functions, classes or objects. */
export const TAKEN_APART = [
  "@opentelemetry/exporter-zipkin",
  "@opentelemetry/instrumentation",
  "@opentelemetry/instrumentation-grpc",
  "@opentelemetry/resources",
  "@opentelemetry/sdk-trace-base",
  "@opentelemetry/sdk-trace-node",
] as const;

/** Its own entry points: what they start inherits the flags of Node, and is none of them. */
const OF_THE_SDK = /[\\/]@pulumi[\\/]pulumi[\\/]cmd[\\/][\w-]+[\\/]index\.js$/;

const [, script] = process.argv;
if (isMainThread && script !== undefined && OF_THE_SDK.test(script)) {
  const require = createRequire(script);
  for (const name of RARELY_USED) putOff(require, name, standIn);
  for (const name of TAKEN_APART) putOff(require, name, standInOfEach);
  putOff(require, "../../runtime/closure/v8Hooks.js", lateHooks);
}

function putOff(require: NodeJS.Require, name: string, stand: (load: () => object) => object): void {
  const file = resolved(require, name);
  if (file === undefined || require.cache[file]) return;
  const entry = new Module(file);
  entry.loaded = true;
  entry.exports = stand(() => {
    delete require.cache[file];
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
