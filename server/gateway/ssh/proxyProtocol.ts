import type { Socket } from "node:net";
import { Command, V1ProxyProtocol, V2ProxyProtocol } from "proxy-protocol-js";
import { normalAddress } from "../../addresses.ts";

/** How long a proxy may take to say for whom it connects, in milliseconds. */
const TIMEOUT = 5_000;
/** Longest header: one of version 2 with every extension that proxies send. */
const LONGEST = 2048;
const V1 = Buffer.from("PROXY ");
const V2 = Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1");
/** Bytes of version 2 before its addresses. */
const V2_HEAD = 16;

/** The header at the beginning of what came: its length once it is complete, 0 where there is none. */
function headerLength(bytes: Buffer): number | undefined {
  if (begins(bytes, V2)) {
    return bytes.length < V2_HEAD ? undefined : V2_HEAD + bytes.readUInt16BE(V2_HEAD - 2);
  }
  if (!begins(bytes, V1)) return 0;
  const end = bytes.indexOf("\r\n");
  return end === -1 ? undefined : end + 2;
}

/** Whether bytes begin with a signature, as far as they have come. */
function begins(bytes: Buffer, signature: Buffer): boolean {
  const length = Math.min(bytes.length, signature.length);
  return bytes.subarray(0, length).equals(signature.subarray(0, length));
}

/**
 * Reads the PROXY protocol (versions 1 and 2) at the beginning of a trusted proxy's connection.
 * @returns the client's address; undefined where the proxy connects for itself, or says nothing in time
 * @throws Error the header is malformed, or the connection has ended
 */
export function readProxied(socket: Socket): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    let bytes = Buffer.alloc(0);
    const settle = (give: () => void) => {
      clearTimeout(timer);
      socket.off("readable", read).off("close", closed);
      if (bytes.length > 0) socket.unshift(bytes);
      give();
    };
    const closed = () => settle(() => reject(new Error("the connection has ended")));
    const timer = setTimeout(() => settle(() => resolve(undefined)), TIMEOUT);
    const read = () => {
      bytes = Buffer.concat([bytes, (socket.read() as Buffer | null) ?? Buffer.alloc(0)]);
      const length = headerLength(bytes);
      if (bytes.length > LONGEST) return settle(() => reject(new Error("the header is too long")));
      if (length === undefined || length > bytes.length) return;
      const header = bytes.subarray(0, length);
      bytes = bytes.subarray(length);
      settle(() => {
        try {
          resolve(length === 0 ? undefined : addressIn(header));
        } catch {
          reject(new Error("the header is malformed"));
        }
      });
    };
    socket.on("readable", read).on("close", closed);
  });
}

/** @throws Error the header is malformed */
function addressIn(header: Buffer): string | undefined {
  if (begins(header, V1)) {
    const text = header.toString("latin1");
    if (text.startsWith("PROXY UNKNOWN")) return undefined;
    const parsed = V1ProxyProtocol.parse(text);
    if (parsed === null) throw new Error("malformed");
    return known(parsed.source.ipAddress);
  }
  const parsed = V2ProxyProtocol.parse(header);
  if (parsed === null) throw new Error("malformed");
  if (parsed.command === Command.LOCAL) return undefined;
  const address: { readonly sourceAddress?: { readonly address: readonly number[] } } =
    parsed.proxyAddress as never;
  const parts = address.sourceAddress?.address;
  if (parts === undefined) return undefined;
  if (parts.length === 4) return known(parts.join("."));
  return known(Buffer.from(parts).toString("hex").match(/.{4}/g)?.join(":") ?? "");
}

function known(text: string): string {
  const address = normalAddress(text);
  if (address === undefined) throw new Error("malformed");
  return address;
}
