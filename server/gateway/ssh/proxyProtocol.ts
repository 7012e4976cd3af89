import type { Socket } from "node:net";
import { normalAddress } from "../../addresses.ts";

/** Maximum time, in milliseconds, for a proxy to send the PROXY protocol header. */
const TIMEOUT = 5_000;
/** Maximum length of a header, in bytes. A version 2 header with all extensions that proxies send is shorter. */
const LONGEST = 2048;
const V1 = Buffer.from("PROXY ");
const V2 = Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1");
/** Length of the part of a version 2 header before its addresses, in bytes. */
const V2_HEAD = 16;

/**
 * Returns the length of the PROXY protocol header at the start of the received bytes. Returns 0 if the bytes do not
 * begin with a header, and undefined if the header is incomplete.
 */
function headerLength(bytes: Buffer): number | undefined {
  if (startsWithSignature(bytes, V2)) {
    return bytes.length < V2_HEAD ? undefined : V2_HEAD + bytes.readUInt16BE(V2_HEAD - 2);
  }
  if (!startsWithSignature(bytes, V1)) return 0;
  const end = bytes.indexOf("\r\n");
  return end === -1 ? undefined : end + 2;
}

/** Returns true if the bytes received so far are the start of a PROXY protocol signature. */
function startsWithSignature(bytes: Buffer, signature: Buffer): boolean {
  const length = Math.min(bytes.length, signature.length);
  return bytes.subarray(0, length).equals(signature.subarray(0, length));
}

/**
 * Reads the PROXY protocol header (versions 1 and 2) from a trusted proxy's connection.
 * @returns the client's address; undefined if the proxy opened the connection for itself, or sent no header in time
 * @throws Error the header is malformed, or the connection has ended
 */
export function readProxied(socket: Socket): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    let bytes = Buffer.alloc(0);
    const settle = (settled: () => void) => {
      clearTimeout(timer);
      socket.off("readable", read).off("close", closed);
      if (bytes.length > 0) socket.unshift(bytes);
      settled();
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

/**
 * Returns the client's address from a header. Returns undefined if the header contains no address.
 * @throws Error the header is malformed
 */
function addressIn(header: Buffer): string | undefined {
  return startsWithSignature(header, V1) ? addressInText(header.toString("latin1")) : addressInBytes(header);
}

/**
 * Parses a version 1 header such as `PROXY TCP4 192.0.2.1 198.51.100.1 56324 22` (section 2.1 of the specification).
 */
function addressInText(header: string): string | undefined {
  if (header.startsWith("PROXY UNKNOWN")) return undefined;
  const source = /^PROXY TCP[46] ([\da-fA-F.:]+) [\da-fA-F.:]+ \d{1,5} \d{1,5}\r\n$/.exec(header)?.[1];
  return normalized(source ?? "");
}

/**
 * Length of two addresses and two ports, in bytes, by address family. The upper four bits of the header's 14th byte
 * contain the address family (section 2.2 of the specification).
 */
const V2_ADDRESSES: Readonly<Record<number, number>> = { 1: 12, 2: 36 };

function addressInBytes(header: Buffer): string | undefined {
  const [version, command] = [header.readUInt8(12) >> 4, header.readUInt8(12) & 0xf];
  if (version !== 2 || command > 1) throw new Error("malformed");
  const length = V2_ADDRESSES[header.readUInt8(13) >> 4];
  // The proxy opened the connection for itself (LOCAL), or the client has no IP address.
  if (command === 0 || length === undefined) return undefined;
  if (header.length < V2_HEAD + length) throw new Error("malformed");
  const bytes = header.subarray(V2_HEAD, V2_HEAD + (length - 4) / 2);
  return normalized(
    bytes.length === 4 ? bytes.join(".") : (bytes.toString("hex").match(/.{4}/g)?.join(":") ?? ""),
  );
}

function normalized(text: string): string {
  const address = normalAddress(text);
  if (address === undefined) throw new Error("malformed");
  return address;
}
