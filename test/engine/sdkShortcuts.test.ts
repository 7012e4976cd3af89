import { createRequire } from "node:module";
import { expect, it } from "vitest";
import {
  CHANGED,
  ERROR_TEXT,
  lateTracing,
  RARELY_USED,
  standIn,
  TRACES,
  type Tracing,
  withoutDebugMessages,
  withoutPositions,
  withoutTraces,
} from "../../provider/engine/embedded/program/sdkShortcuts.ts";

const sdk = createRequire(createRequire(import.meta.url).resolve("@pulumi/pulumi/cmd/run/index.js"));

it("the SDK has the patched functions", () => {
  expect(sdk(CHANGED.messages)).toMatchObject({
    debug: expect.any(Function),
    error: expect.any(Function),
  });
  expect(Object.keys(sdk(ERROR_TEXT))).toEqual(["defaultErrorMessage"]);
  expect(sdk(CHANGED.promises)).toHaveProperty("debuggablePromise", expect.any(Function));
  expect(sdk(CHANGED.resources)).toHaveProperty("Resource.stackTrace", expect.any(Function));
});

it("records no stack trace for a watched promise, but for all other errors", async () => {
  const traces: (string | undefined)[] = [];
  const watch = (promise: unknown) => {
    traces.push(new Error("watched").stack);
    return promise;
  };
  const promises = withoutTraces({ debuggablePromise: watch });
  expect(await promises.debuggablePromise(Promise.resolve(5))).toBe(5);
  watch(undefined);
  expect(traces[0]).not.toContain("sdkShortcuts.test.ts");
  expect(traces[1]).toContain("sdkShortcuts.test.ts");
});

it("rethrows errors unchanged", () => {
  const promises = withoutTraces({
    debuggablePromise(): unknown {
      throw new RangeError("too many");
    },
  });
  expect(() => promises.debuggablePromise()).toThrow("too many");
  expect(new Error("after it").stack).toContain("sdkShortcuts.test.ts");
});

it("sends all log messages except debug messages", async () => {
  const sent: string[] = [];
  const send = async (message: string) => void sent.push(message);
  const messages = withoutDebugMessages({ debug: send, warn: send });
  await messages.debug("registering");
  await messages.warn("out of date");
  expect(sent).toEqual(["out of date"]);
});

it("the SDK has the replaced functions of traces", { tags: ["long"] }, () => {
  const functions = {
    start: expect.any(Function),
    stop: expect.any(Function),
    newSpan: expect.any(Function),
  };
  expect(sdk(TRACES.tracing)).toEqual(functions);
  expect(sdk(TRACES.api).trace.getTracer("test").startSpan("run")).toMatchObject({
    end: expect.any(Function),
    addEvent: expect.any(Function),
  });
});

it("loads the exporters of traces when the export starts", () => {
  const calls: string[] = [];
  const original: Tracing = {
    start: (destination) => void calls.push(`start ${destination}`),
    stop: () => void calls.push("stop"),
    newSpan: (name) => `exported ${name}`,
  };
  const load = () => {
    calls.push("load");
    return original;
  };
  const api = () => ({ trace: { getTracer: () => ({ startSpan: (name: string) => `local ${name}` }) } });
  const tracing = lateTracing(load, api);
  tracing.stop();
  expect(tracing.newSpan("run")).toBe("local run");
  expect(calls).toEqual([]);
  tracing.start("http://127.0.0.1:9411");
  expect(tracing.newSpan("run")).toBe("exported run");
  tracing.stop();
  expect(calls).toEqual(["load", "start http://127.0.0.1:9411", "stop"]);
});

it("does not patch an SDK version without the expected functions", () => {
  expect(withoutTraces({})).toEqual({});
  expect(withoutPositions({})).toEqual({});
});

class Resolver {
  static readonly fast = true;
  readonly path: string;
  constructor(path: string) {
    this.path = path;
  }
}

it("a stand-in loads its module on first access", () => {
  let loads = 0;
  const exports = standIn(() => {
    loads += 1;
    return { version: "6.0.3" };
  });
  // Compiled import code reads `__esModule` first. If it is missing, the code copies all properties of the module,
  // which would load the lazy module.
  expect((exports as { __esModule?: boolean }).__esModule).toBe(true);
  expect(loads).toBe(0);
  expect((exports as { version?: string }).version).toBe("6.0.3");
  expect((exports as { version?: string }).version).toBe("6.0.3");
  expect(loads).toBe(1);
});

it("a stand-in has the same functions and properties as its module", () => {
  const Stand = standIn(() => Resolver) as typeof Resolver;
  expect(Stand.fast).toBe(true);
  expect(new Stand("/work").path).toBe("/work");
  expect(new Stand("/work")).toBeInstanceOf(Resolver);
  const twice = standIn(() => (value: number) => value * 2) as (value: number) => number;
  expect(twice(21)).toBe(42);
  class Own extends Stand {}
  expect(new Own("/work")).toBeInstanceOf(Own);
});

it.each(RARELY_USED)("the SDK has %s", (name) => {
  expect(sdk.resolve(name)).toContain("node_modules");
});

it("a stand-in has the properties of a module with getters", () => {
  const compiler: object = createRequire(import.meta.url)("typescript");
  const stand = standIn(() => compiler);
  expect(Object.keys(stand)).toEqual(Object.keys(compiler));
  expect({ ...stand }).toEqual({ ...compiler });
  expect("SyntaxKind" in stand).toBe(true);
});

it("a stand-in passes assignments to its module", () => {
  const real: Record<string, number> = { one: 1 };
  const stand = standIn(() => real) as Record<string, number>;
  stand.two = 2;
  delete stand.one;
  expect(real).toEqual({ two: 2 });
});
