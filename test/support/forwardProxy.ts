import { createServer, type IncomingMessage, request } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type Listening, listening } from "./listening.ts";

/** A host name that only the proxy resolves: to 127.0.0.1, like every other name. */
export const PROXIED_HOST = "gatehouse.test";

/** Returns the URL of a server of this machine under {@link PROXIED_HOST}, so that clients use a proxy. */
export function proxied(url: string): string {
  const copy = new URL(url);
  copy.hostname = PROXIED_HOST;
  return copy.href.replace(/\/$/, "");
}

/** An HTTP proxy: it forwards requests in absolute form, and opens tunnels (CONNECT). It connects only to 127.0.0.1. */
export interface ForwardProxy extends Listening {
  /** All requests so far, such as `CONNECT gatehouse.test:443` or `GET http://gatehouse.test:8080/info`. */
  readonly requests: readonly string[];
  /** From now on, answers with this status and an HTML page. Undefined forwards again. */
  refuse(status: number | undefined): void;
  /** From now on, answers nothing. */
  stall(): void;
}

interface ForwardProxyOptions {
  /** The required user name and password, as `user:password`. Default: none is required. */
  readonly account?: string;
  /** Certificate and key (PEM), for a proxy with TLS. */
  readonly tls?: { readonly cert: string; readonly key: string };
}

/** Starts a proxy on a free port. */
export async function startForwardProxy({ account, tls }: ForwardProxyOptions = {}): Promise<ForwardProxy> {
  const requests: string[] = [];
  let refusal: number | undefined;
  let isStalled = false;
  const sockets = new Set<Duplex>();
  const expected = account && `Basic ${Buffer.from(account).toString("base64")}`;
  const statusFor = ({ method, url, headers }: IncomingMessage): number => {
    requests.push(`${method} ${url}`);
    return expected !== undefined && headers["proxy-authorization"] !== expected ? 407 : (refusal ?? 200);
  };
  const server = tls ? createTlsServer(tls) : createServer();
  server.on("request", (incoming, outgoing) => {
    const status = statusFor(incoming);
    if (isStalled) return;
    if (status !== 200) {
      outgoing.writeHead(status, { "content-type": "text/html" }).end("<html>refused by the proxy</html>");
      return;
    }
    const { port, pathname, search } = new URL(incoming.url ?? "");
    const { "proxy-authorization": _, ...headers } = incoming.headers;
    const path = pathname + search;
    const onward = request({ host: "127.0.0.1", port, method: incoming.method, path, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    onward.on("error", () => outgoing.writeHead(502).end());
    incoming.pipe(onward);
  });
  server.on("connect", (incoming: IncomingMessage, near: Socket, head: Buffer) => {
    const status = statusFor(incoming);
    sockets.add(near);
    near.on("error", () => {});
    if (isStalled) return;
    if (status !== 200) {
      near.end(`HTTP/1.1 ${status} Refused\r\nContent-Length: 0\r\n\r\n`);
      return;
    }
    const far = connect(Number(/:(\d+)$/.exec(incoming.url ?? "")?.[1]), "127.0.0.1", () => {
      near.write("HTTP/1.1 200 Connection established\r\n\r\n");
      far.write(head);
      near.pipe(far).pipe(near);
    });
    sockets.add(far);
    far.on("error", () => near.end("HTTP/1.1 502 Bad Gateway\r\n\r\n"));
    far.on("close", () => near.destroy());
    near.on("close", () => far.destroy());
  });
  const { url, stop } = await listening(server);
  return {
    url: tls ? url.replace("http://127.0.0.1", "https://localhost") : url,
    requests,
    refuse: (status) => {
      refusal = status;
    },
    stall: () => {
      isStalled = true;
    },
    async stop() {
      for (const socket of sockets) socket.destroy();
      await stop();
    },
  };
}
