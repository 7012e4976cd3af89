import { createRequire } from "node:module";
import { expect, it } from "vitest";
import {
  CHANGED,
  withoutDebugMessages,
  withoutPositions,
  withoutTraces,
} from "../../provider/engine/embedded/program/unseenWork.ts";

const sdk = createRequire(createRequire(import.meta.url).resolve("@pulumi/pulumi/cmd/run/index.js"));

it("the SDK has what is changed in it", () => {
  expect(sdk(CHANGED.messages)).toHaveProperty("debug", expect.any(Function));
  expect(sdk(CHANGED.promises)).toHaveProperty("debuggablePromise", expect.any(Function));
  expect(sdk(CHANGED.resources)).toHaveProperty("Resource.stackTrace", expect.any(Function));
});

it("takes no stack trace of a watched promise, and all others as before", async () => {
  const traces: (string | undefined)[] = [];
  const watch = (promise: unknown) => {
    traces.push(new Error("watched").stack);
    return promise;
  };
  const promises = withoutTraces({ debuggablePromise: watch });
  expect(await promises.debuggablePromise(Promise.resolve(5))).toBe(5);
  watch(undefined);
  expect(traces[0]).not.toContain("unseenWork.test.ts");
  expect(traces[1]).toContain("unseenWork.test.ts");
});

it("leaves errors as they are", () => {
  const promises = withoutTraces({
    debuggablePromise(): unknown {
      throw new RangeError("too many");
    },
  });
  expect(() => promises.debuggablePromise()).toThrow("too many");
  expect(new Error("after it").stack).toContain("unseenWork.test.ts");
});

it("sends no debug message, and all others", async () => {
  const sent: string[] = [];
  const send = async (message: string) => void sent.push(message);
  const messages = withoutDebugMessages({ debug: send, warn: send });
  await messages.debug("registering");
  await messages.warn("out of date");
  expect(sent).toEqual(["out of date"]);
});

it("leaves a version of the SDK alone that has nothing of it", () => {
  expect(withoutTraces({})).toEqual({});
  expect(withoutPositions({})).toEqual({});
});
