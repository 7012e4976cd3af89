import { connect, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/** A connection on which a test sends any bytes. It ends when the test ends. */
export interface RawConnection {
  readonly socket: Socket;
  /** Returns the text that the service has sent so far. */
  received(): string;
  /** Returns the statuses of the responses so far. */
  statuses(): string[];
  /** Fulfilled with the text that the service has sent when the connection is closed, also if the service resets it. */
  readonly closed: Promise<string>;
}

/**
 * Opens a connection.
 * @param to the URL of an HTTP server, or the path of its socket
 */
export function openConnection(to: string): RawConnection {
  const socket = to.startsWith("http:") ? connect(Number(new URL(to).port), "127.0.0.1") : connect(to);
  onTestFinished(() => void socket.destroy());
  // The service may reset the connection while the client sends.
  socket.on("error", () => {});
  let text = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  return {
    socket,
    received: () => text,
    statuses: () => Array.from(text.matchAll(/HTTP\/1\.1 (\d+)/g), ([, status = ""]) => status),
    closed: new Promise((resolve) => socket.on("close", () => resolve(text))),
  };
}
