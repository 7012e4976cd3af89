import { type InternalOperations, internalOperations } from "@gatehouse-access/sdk/contract";
import { buildInternalApp } from "../../../server/process/internalApp.ts";
import { type Answer, type CallOptions, callBy, sendTo, type TestApp } from "./testApp.ts";

export const INTERNAL_TOKEN = "the-internal-token-of-the-tests-0";

/** The internal listener of a test's service. Requests use real HTTP. */
export interface TestInternalApp {
  readonly url: string;
  /** Sends any request, with the internal token unless the caller sets headers. Returns the response unchecked. */
  send(method: string, path: string, options?: RequestInit): Promise<Answer>;
  /** Calls an internal operation with the internal token. The response must conform to the contract. */
  call(id: keyof InternalOperations, options?: CallOptions): Promise<Answer>;
  stop(): Promise<void>;
}

/**
 * Starts the internal listener of a service.
 * @param options for tests that read the log or test limits
 */
export async function startInternalApp(
  { services, gateway }: Pick<TestApp, "services" | "gateway">,
  options: Omit<Parameters<typeof buildInternalApp>[2], "token"> = {},
): Promise<TestInternalApp> {
  const app = await buildInternalApp(services, gateway, { token: INTERNAL_TOKEN, ...options });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  const credential = { "X-Internal-Token": INTERNAL_TOKEN };

  const send: TestInternalApp["send"] = (method, path, options) =>
    sendTo(url + path, { method, headers: credential, ...options });
  return {
    url,
    send,
    call: (id, options = {}) =>
      callBy(send, internalOperations[id], { ...options, headers: { ...credential, ...options.headers } }),
    stop: () => app.close(),
  };
}
