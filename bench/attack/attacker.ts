// A stranger who wears the service out, in a thread of its own, so that the measuring one has its time to itself.
import { randomBytes } from "node:crypto";
import { connect } from "node:net";
import { parentPort, workerData } from "node:worker_threads";
import { Pool } from "undici";
import { reportOf } from "../server/namespaces.ts";

/** What the stranger does, over and over. */
export type Attack =
  | { readonly kind: "none" }
  /** Sends requests without waiting for answers; `unread`: and never reads one. */
  | { readonly kind: "pipelined"; readonly path: string; readonly requests: number; readonly unread: boolean }
  /** Enrols devices that nobody knows. */
  | { readonly kind: "enrolments"; readonly namespace: "many" }
  /** Asks for something expensive. */
  | { readonly kind: "requests"; readonly path: string; readonly token: string };

/** What a thread is started with. */
export interface Order {
  readonly url: string;
  readonly connections: number;
  readonly attack: Attack;
}

const { url, connections, attack } = workerData as Order;
const answers = new Map<number, number>();
const count = (status: number) => answers.set(status, (answers.get(status) ?? 0) + 1);

parentPort?.on("message", () => parentPort?.postMessage(Object.fromEntries(answers)));

if (attack.kind === "pipelined") {
  const { hostname, port } = new URL(url);
  const bytes = `GET ${attack.path} HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`.repeat(attack.requests);
  const open = () => {
    const socket = connect(Number(port), hostname);
    if (!attack.unread) socket.resume();
    socket.on("error", () => {});
    socket.on("close", () => setTimeout(open, 100));
    socket.write(bytes);
  };
  for (let index = 0; index < connections; index += 1) open();
} else if (attack.kind !== "none") {
  const pool = new Pool(url, { connections, bodyTimeout: 0, headersTimeout: 0 });
  const request = () => {
    if (attack.kind === "requests") {
      return {
        method: "GET" as const,
        path: attack.path,
        headers: { authorization: `Bearer ${attack.token}` },
      };
    }
    const device = { ...reportOf(attack.namespace, 0), hostname: randomBytes(8).toString("hex") };
    const body = JSON.stringify({ ...device, identity: { mac: randomBytes(6).toString("hex") } });
    return {
      method: "POST" as const,
      path: "/api/devices/auth",
      headers: { "content-type": "application/json" },
      body,
    };
  };
  for (let index = 0; index < connections; index += 1) {
    void (async () => {
      for (;;) {
        const { statusCode, body } = await pool.request(request());
        await body.dump();
        count(statusCode);
      }
    })();
  }
}
