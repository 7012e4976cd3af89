import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { listening } from "./listening.ts";

/** A server that receives the messages of `gatehouse drift --notify`. */
export interface TestWebhook {
  /** The address, which is a secret. */
  readonly url: string;
  /** The part of the address that must not occur in any output. */
  readonly secret: string;
  /** All messages that were received, including those that the receiver rejected. */
  readonly messages: readonly unknown[];
  /** Sets the responses to the next messages. The receiver responds to later messages with status 200. */
  answer(...answers: readonly { readonly status: number; readonly headers?: Record<string, string> }[]): void;
  stop(): Promise<void>;
}

/** Starts a receiver of messages. */
export async function startWebhook(): Promise<TestWebhook> {
  const secret = "T0123/B0456/very-secret";
  const messages: unknown[] = [];
  let answers: { readonly status: number; readonly headers?: Record<string, string> }[] = [];
  const server = createServer(async (request, response) => {
    const isRight =
      request.method === "POST" &&
      request.url === `/services/${secret}` &&
      request.headers["content-type"] === "application/json";
    messages.push(await json(request));
    const { status, headers } = answers.shift() ?? { status: isRight ? 200 : 400 };
    response.writeHead(status, headers).end("ok");
  });
  const { url, stop } = await listening(server);
  return {
    url: `${url}/services/${secret}`,
    secret,
    messages,
    answer: (...next) => {
      answers = [...next];
    },
    stop,
  };
}
