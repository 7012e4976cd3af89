import type { Session } from "node:inspector";
import { standIn } from "./standIn.ts";

/**
 * In place of the SDK's module v8Hooks, by which it learns for its messages in which file a function was written.
 * The SDK has a debugger on from the start, which makes all that is loaded later slower; this one begins when it is
 * asked for. V8 then tells of all scripts so far, too, to whoever listens before.
 */
export function lateHooks(load: () => object): object {
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
  // What another version of the module has more is its own.
  return Object.setPrototypeOf(hooks, standIn(load)) as object;
}
