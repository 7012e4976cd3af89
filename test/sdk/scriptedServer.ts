import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Agent, type Dispatcher } from "undici";
import { onTestFinished } from "vitest";
import { listening } from "../support/listening.ts";

export interface Recorded {
  readonly method: string;
  /** Path and query of the request, unchanged. */
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: unknown;
}

type Headers = Readonly<Record<string, string>>;

/** A scripted response, or another reaction to the request. */
export type Step =
  | { readonly status?: number; readonly headers?: Headers; readonly body?: unknown }
  /** Closes the connection after the request, and sends no response. */
  | "die"
  /** Sends headers and the first half of a body, then closes the connection. */
  | "dieInBody"
  /** Never responds. */
  | "hang"
  | ((request: Recorded) => Step | Promise<Step>);

export interface ScriptedServer {
  readonly url: string;
  readonly requests: Recorded[];
  /** Sets the reactions to the next requests, in order. The server responds to further requests with status 599. */
  script(...steps: Step[]): void;
  /** Sets one reaction for all requests. */
  always(step: Step): void;
}

async function play(step: Step, recorded: Recorded, response: ServerResponse): Promise<void> {
  if (typeof step === "function") {
    return play(await step(recorded), recorded, response);
  }
  if (step === "die") {
    response.socket?.destroy();
  } else if (step === "dieInBody") {
    response.writeHead(200, { "content-type": "application/json", "content-length": "100" });
    response.write('{"half":', () => response.socket?.destroy());
  } else if (step !== "hang") {
    const { status = 200, headers = {}, body } = step;
    const text = body === undefined || typeof body === "string" ? (body ?? "") : JSON.stringify(body);
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(text);
  }
}

/** Starts a server that reacts as a test scripts it, and records its requests. The server stops when the test ends. */
export async function scriptedServer(): Promise<ScriptedServer> {
  const steps: Step[] = [];
  const requests: Recorded[] = [];
  let every: Step | undefined;
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) {
      chunks.push(chunk);
    }
    const text = Buffer.concat(chunks).toString("utf8");
    const recorded = {
      method: request.method ?? "",
      path: request.url ?? "",
      headers: request.headers,
      body: text === "" ? undefined : JSON.parse(text),
    };
    requests.push(recorded);
    await play(every ?? steps.shift() ?? { status: 599, body: "no step left" }, recorded, response);
  });
  const { url, stop } = await listening(server);
  onTestFinished(stop);
  return {
    url,
    requests,
    script: (...more) => {
      steps.push(...more);
    },
    always: (step) => {
      every = step;
    },
  };
}

/** Creates a dispatcher that replaces the network: it responds to every request at once, without a server. */
export function answering(
  respond: () => { readonly status: number; readonly headers?: Headers },
): Dispatcher {
  return new Agent().compose(() => (_request, handler) => {
    const controller = { abort() {}, pause() {}, resume() {}, aborted: false, paused: false, reason: null };
    const { status, headers = {} } = respond();
    handler.onRequestStart?.(controller, {});
    handler.onResponseStart?.(controller, status, headers, "");
    handler.onResponseEnd?.(controller, {});
    return true;
  });
}

/** Creates a simulated clock, which advances only in `sleep` and `advance`. */
export function fakeTiming(start = Date.UTC(2030, 0, 1)) {
  let now = start;
  const slept: number[] = [];
  return {
    slept,
    advance: (ms: number) => {
      now += ms;
    },
    timing: {
      now: () => now,
      random: () => 0.5,
      sleep: async (ms: number, signal?: AbortSignal) => {
        signal?.throwIfAborted();
        slept.push(ms);
        now += ms;
      },
    },
  };
}

/** Creates a JWT with the claims of rules section 2 and an invalid signature. */
export function fakeToken(claims: { tenant?: string; iat?: Date; exp?: Date; jti?: string }): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const payload = {
    claims: "user",
    id: "0123456789abcdef01234567",
    tenant: claims.tenant ?? "",
    jti: claims.jti ?? "1",
    ...(claims.iat && { iat: Math.floor(claims.iat.getTime() / 1000) }),
    ...(claims.exp && { exp: Math.floor(claims.exp.getTime() / 1000) }),
  };
  return `${part({ alg: "RS256", typ: "JWT" })}.${part(payload)}.c2ln`;
}

export const TENANT = "00000000-0000-4000-8000-000000000001";
export const OTHER = "00000000-0000-4000-8000-000000000002";
