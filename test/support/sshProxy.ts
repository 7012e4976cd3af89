import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

interface SshProxyOptions {
  /** Port of the SSH gateway. */
  readonly port: number;
  /** Source address of the proxy's connections to the SSH gateway. */
  readonly from: string;
  /** The header of the PROXY protocol, which contains the client's address. */
  readonly header: string | Buffer;
}

/**
 * A proxy in front of the SSH gateway. The proxy sends the client's address to the SSH gateway in a PROXY protocol
 * header.
 */
export interface SshProxy {
  readonly port: number;
  stop(): void;
}

/** Starts a proxy on a free port. */
export async function startSshProxy({ port, from, header }: SshProxyOptions): Promise<SshProxy> {
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect({ port, host: "127.0.0.1", localAddress: from });
    far.write(header);
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    stop: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Returns a header of PROXY protocol version 1. */
export const proxyHeader1 = (address: string): string =>
  `PROXY ${address.includes(":") ? "TCP6" : "TCP4"} ${address} 127.0.0.1 12345 22\r\n`;

/** Returns a header of PROXY protocol version 2 with an IPv6 address. */
export function proxyHeader2(address: string): Buffer {
  const [begin = "", end = ""] = address.split("::");
  const groups = (text: string) => (text === "" ? [] : text.split(":"));
  const [first, last] = [groups(begin), groups(end)];
  const zeros = Array<string>(8 - first.length - last.length).fill("0");
  const hex = [...first, ...zeros, ...last].map((group) => group.padStart(4, "0")).join("");
  return Buffer.concat([
    Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1"),
    // Version 2, connection of a client, TCP over IPv6, and the number of bytes that follow.
    Buffer.from([0x21, 0x21, 0, 36]),
    Buffer.from(hex, "hex"),
    Buffer.alloc(16),
    Buffer.from([0x30, 0x39, 0, 22]),
  ]);
}
