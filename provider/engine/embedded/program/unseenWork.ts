// Loaded into the SDK's processes before their own code, to spare them work that nobody sees. The SDK takes stack
// traces, which source maps translate: one at each promise that it makes, fifty for a public key, to print it where the
// promise never ends and PULUMI_DEBUG_PROMISE_LEAKS is set; and one at each resource, to tell the engine where the
// program declares it. It also sends its debug messages to the engine, four for a resource, one after the other. This
// engine has no use for either. Without this, `gatehouse up` of 1,000 public keys takes 30 s of CPU instead of 11 s.
import { inPlaceOf, standIn } from "./lazyModules.ts";

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

/** Changes the SDK's module of messages, so that debug messages are sent nowhere. */
export function withoutDebugMessages<M extends object>(messages: M): M {
  return Object.assign(messages, { debug: async () => {} });
}

/** Changes the SDK's module of resources, so that it does not ask where a program declares them. */
export function withoutPositions<M extends { Resource?: { stackTrace?(skip: number): unknown } }>(
  resources: M,
): M {
  const { Resource } = resources;
  if (Resource?.stackTrace) Resource.stackTrace = () => [];
  return resources;
}

/**
 * Changes the SDK's module of watched promises, so that it takes no stack trace of one, and keeps no words about it. It
 * still knows those that never end.
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
