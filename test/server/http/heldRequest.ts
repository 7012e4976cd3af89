import { buildApp } from "../../../server/app.ts";
import type { TestApp, TestUser } from "./testApp.ts";

/**
 * Sends a request, but not the end of its body. When the promise resolves, the service has checked the credential, but
 * has not read any objects for the request.
 * @returns a function that sends the rest of the body and returns the status of the response
 */
export async function holdRequest(
  app: TestApp,
  { token }: Pick<TestUser, "token">,
  method: string,
  path: string,
  body: object,
): Promise<() => Promise<number>> {
  const listener = await buildApp(app.services, app.gateway);
  const checked = Promise.withResolvers<void>();
  // Fastify runs this hook after the service's own hooks, which have then checked the credential.
  listener.addHook("preParsing", async () => checked.resolve());
  const url = await listener.listen({ host: "127.0.0.1", port: 0 });
  const bytes = new TextEncoder().encode(JSON.stringify(body));
  let finish = () => {};
  const rest = new ReadableStream({
    start(controller) {
      controller.enqueue(bytes.slice(0, 5));
      finish = () => {
        controller.enqueue(bytes.slice(5));
        controller.close();
      };
    },
  });
  const answer = fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: rest,
    duplex: "half",
  } as RequestInit);
  await Promise.race([checked.promise, answer]);
  return async () => {
    finish();
    const { status } = await answer;
    await listener.close();
    return status;
  };
}
