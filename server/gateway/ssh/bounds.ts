import type { EventEmitter } from "node:events";
import type { Duplex, Readable, Writable } from "node:stream";
import type { Client, ClientChannel, Connection, ServerChannel, Session } from "ssh2";
import type { OutputStream } from "../../features/sessions/addEntries.ts";

/**
 * Minimum value, in bytes, that a peer may set as its maximum packet size. With a smaller value, the library would
 * split its data into a very large number of packets.
 */
const SMALLEST_PACKET = 1024;
/**
 * Maximum number of packets that a client may send before login. Six passwords and forty key queries need fewer
 * packets.
 */
const PACKETS_BEFORE_LOGIN = 200;
/**
 * Maximum number of unread bytes for a peer. Above this number, the gateway stops reading from the peer's connection.
 */
const UNREAD = 256 * 1024;
/** Maximum number of unread bytes for a client before login. Above this number, the gateway closes the connection. */
const UNREAD_BEFORE_LOGIN = 64 * 1024;
/** `SSH_OPEN_RESOURCE_SHORTAGE` (RFC 4254, section 5.1). */
const RESOURCE_SHORTAGE = 4;

interface Incoming {
  readonly window: number;
  readonly state: "open" | "eof" | "closed";
}

/** The SSH library's internal fields of a channel. In a session, `_channel` is set after the first request. */
interface LibraryChannel {
  readonly incoming?: Incoming;
  readonly _channel?: { readonly incoming: Incoming };
  /** Exists only in sessions. */
  readonly _chanInfo?: { readonly outgoing: { readonly id: number } };
}

interface OpenedChannel {
  readonly sender: number;
  readonly packetSize: number;
}

type Handler = (protocol: LibraryProtocol, ...values: never[]) => void;

interface LibraryProtocol {
  _onPacket: () => void;
  /** The current key exchange. If no key exchange is in progress, the last one. */
  readonly _kex: object | undefined;
  readonly _handlers: Record<string, Handler>;
  /** Packets that are waiting for the end of a key exchange. Undefined if no key exchange is in progress. */
  readonly _queue: readonly unknown[] | undefined;
  channelClose(channel: number): void;
  requestFailure(): void;
  signal(channel: number, name: string): void;
  channelOpenFail(recipient: number, reason: number, description: string): void;
}

/**
 * Private fields of the SSH library's connections. The library's version is pinned, because other versions may lack
 * these fields.
 */
interface Internals {
  readonly _sock: Duplex;
  readonly _protocol: LibraryProtocol;
  readonly _chanMgr: {
    get(id: number): LibraryChannel | undefined;
    remove(id: number): void;
  };
}

/**
 * Returns the private fields of an SSH connection.
 * @throws Error this version of the SSH library lacks a field, so the gateway cannot enforce its limits
 */
function internalsOf(connection: Client | Connection): Internals {
  const { _sock, _protocol, _chanMgr } = connection as unknown as Partial<Internals>;
  const complete = _sock && _chanMgr && _protocol?._onPacket && _protocol._handlers?.CHANNEL_DATA;
  if (!complete)
    throw new Error("this version of ssh2 is not supported: the gateway cannot enforce its limits");
  return { _sock, _protocol, _chanMgr };
}

/** The name of the software at the other end of a channel. */
export const softwareOf = (channel: ClientChannel): string =>
  (channel as unknown as { readonly _client: { readonly _remoteVer: string } })._client._remoteVer;

export const socketOf = (connection: Client | Connection): Duplex => internalsOf(connection)._sock;

/** Returns true if the peer has started a key exchange. */
export const hasBegunExchange = (connection: Client | Connection): boolean =>
  internalsOf(connection)._protocol._kex !== undefined;

/**
 * A brake for one connection (backpressure): pauses reading from the connection while there is at least one reason to
 * pause.
 */
export class Brake {
  readonly #socket: Duplex;
  readonly #reasons = new Set<string>();

  constructor(socket: Duplex) {
    this.#socket = socket;
  }

  /**
   * Pauses reading for the given reason until a promise settles. Does nothing if reading is already paused for this
   * reason.
   * @param until returns the promise. Called only if reading is not yet paused for this reason.
   */
  hold(reason: string, until: () => Promise<unknown>): void {
    if (this.#reasons.has(reason)) return;
    this.#reasons.add(reason);
    this.#socket.pause();
    const release = () => {
      this.#reasons.delete(reason);
      if (this.#reasons.size === 0) this.#socket.resume();
    };
    until().then(release, release);
  }
}

/** Resolves when a stream accepts more data or has closed. */
async function drained(stream: Writable): Promise<void> {
  if (!stream.writableNeedDrain || stream.destroyed) return;
  await new Promise<void>((resolve) => {
    const settle = () => {
      stream.off("drain", settle).off("close", settle);
      resolve();
    };
    stream.on("drain", settle).on("close", settle);
  });
}

/**
 * Limits the resources that the peer of a connection can use, because the library does not limit them. Limits the
 * number of packets before login, and the number of unread response bytes. Closes the connection if the peer sends more
 * data than a channel's window allows, because the library does not check the window. Rejects very small maximum packet
 * sizes.
 * @param isLoggedIn returns true if the peer is authenticated; agents are authenticated before SSH begins
 * @param onData called when the peer sends data on a channel
 */
export function bound(
  connection: Client | Connection,
  isLoggedIn: () => boolean,
  onData: () => void = () => {},
): Brake {
  const { _sock: socket, _protocol: protocol, _chanMgr: channels } = internalsOf(connection);
  const brake = new Brake(socket);
  let packets = 0;
  const onPacket = protocol._onPacket;
  protocol._onPacket = () => {
    onPacket();
    if (!isLoggedIn()) {
      packets += 1;
      if (packets > PACKETS_BEFORE_LOGIN || socket.writableLength > UNREAD_BEFORE_LOGIN) socket.destroy();
      return;
    }
    if (socket.writableLength >= UNREAD) brake.hold("unread responses", () => drained(socket));
  };
  const handlers = protocol._handlers;
  const check = (name: string, isAllowed: (...values: never[]) => boolean) => {
    const handle = handlers[name];
    if (handle === undefined) return;
    handlers[name] = (of, ...values) => {
      if (isAllowed(...values)) handle(of, ...values);
    };
  };
  check("CHANNEL_OPEN", ({ sender, packetSize }: OpenedChannel) => {
    if (packetSize >= SMALLEST_PACKET) return true;
    const reason = `the maximum packet size must be ${SMALLEST_PACKET} or more`;
    protocol.channelOpenFail(sender, RESOURCE_SHORTAGE, reason);
    return false;
  });
  check("CHANNEL_OPEN_CONFIRMATION", ({ packetSize }: OpenedChannel) => {
    if (packetSize >= SMALLEST_PACKET) return true;
    socket.destroy();
    return false;
  });
  const isInWindow = (recipient: number, data: Buffer) => {
    onData();
    const channel = channels.get(recipient);
    const incoming = (channel?._channel ?? channel)?.incoming;
    if (incoming === undefined || (incoming.state === "open" && data.length <= incoming.window)) return true;
    socket.destroy();
    return false;
  };
  const close = handlers.CHANNEL_CLOSE as (of: LibraryProtocol, recipient: number) => void;
  handlers.CHANNEL_CLOSE = (of, recipient: number) => {
    const { _chanInfo: session, _channel: channel } = channels.get(recipient) ?? {};
    close(of, recipient);
    if (session === undefined || channel !== undefined) return;
    // If the peer closes a session before its first request, the library keeps the session and sends no CHANNEL_CLOSE.
    // The session would then emit `close` again for each further CHANNEL_CLOSE from the peer. So remove the session
    // here.
    channels.remove(recipient);
    of.channelClose(session.outgoing.id);
  };
  // Reject the host keys that OpenSSH servers announce. The library would parse hundreds of announced keys, and keep
  // each key until the server proves that it has the key.
  check("GLOBAL_REQUEST", (name: string, wantsReply: boolean) => {
    if (name !== "hostkeys-00@openssh.com") return true;
    if (wantsReply) protocol.requestFailure();
    return false;
  });
  check("CHANNEL_DATA", isInWindow);
  check("CHANNEL_EXTENDED_DATA", isInWindow);
  return brake;
}

/**
 * Returns true if data that was written to a connection is waiting for the socket or for the end of a key exchange.
 */
export function isCongested(connection: Client | Connection): boolean {
  const { _sock: socket, _protocol: protocol } = internalsOf(connection);
  return socket.writableNeedDrain || protocol._queue !== undefined;
}

/** Resolves when no data that was written to a connection is waiting. */
export async function relieved(connection: Client | Connection): Promise<void> {
  await exchanged(connection);
  await drained(socketOf(connection));
}

/** Resolves when no key exchange is in progress. During a key exchange, the library queues written data. */
async function exchanged(connection: Client | Connection): Promise<void> {
  const { _sock: socket, _protocol: protocol } = internalsOf(connection);
  if (protocol._queue === undefined || socket.destroyed) return;
  const events: EventEmitter = connection;
  await new Promise<void>((resolve) => {
    const settle = () => {
      events.off("handshake", settle).off("close", settle);
      resolve();
    };
    events.on("handshake", settle).on("close", settle);
  });
}

/** States of a channel's sending direction in which the library silently drops written data. */
const SHUT: ReadonlySet<unknown> = new Set(["eof", "closing", "closed"]);

/**
 * Writes to a stream. Resolves when the stream has accepted the data. For a channel, also waits until the connection
 * has accepted the data. Drops data that the peer can no longer receive.
 */
export async function write(to: Writable, data: Buffer): Promise<void> {
  const { outgoing } = to as { readonly outgoing?: { readonly state: string } };
  if (SHUT.has(outgoing?.state)) return;
  await new Promise<void>((resolve) => {
    const settle = () => {
      to.off("close", settle);
      resolve();
    };
    to.on("close", settle);
    to.write(data, settle);
  });
  const { _channel: channel = to } = to as { readonly _channel?: Writable };
  const connection = (channel as { readonly _client?: Client | Connection })._client;
  await (connection === undefined ? drained(to) : relieved(connection));
}

/**
 * Lets a session accept requests after its client has sent EOF. Without this function, the library refuses all such
 * requests, including signals.
 */
export function takeLateRequests(session: Session): void {
  session.on("eof", () => {
    (session as { _ending?: boolean })._ending = false;
  });
}

/**
 * Sends a signal on a channel. The library's own method drops the signal if EOF was already sent on the channel.
 * @param name a signal name of RFC 4254, section 6.10
 */
export function sendSignal(channel: ClientChannel, name: string): void {
  const { outgoing, _client: client } = channel as unknown as {
    readonly outgoing: { readonly id: number; readonly state: string };
    readonly _client: Client;
  };
  if (outgoing.state === "open" || outgoing.state === "eof") {
    internalsOf(client)._protocol.signal(outgoing.id, name);
  }
}

/** Ignores the errors of a channel, because the channel closes after each error. */
export function ignoreErrors(channel: { readonly stderr: EventEmitter } & EventEmitter): void {
  for (const stream of [channel, channel.stderr]) stream.on("error", () => {});
}

/**
 * Forwards all data of a stream at the receiver's speed. Does not forward EOF.
 * @param take forwards data; resolves when the receiver accepts more data
 */
export async function passOn(from: Readable, take: (data: Buffer) => Promise<void>): Promise<void> {
  try {
    for await (const data of from.iterator({ destroyOnReturn: false })) await take(data as Buffer);
  } catch {
    // Ignore the error: reading also ends early if the peer disconnects.
  }
}

/**
 * The channel fields in which the library stores a write that waits for the window. The library does not clear these
 * fields after the write.
 */
interface PendingWrite {
  _chunk?: unknown;
  _chunkcb?: unknown;
  _chunkErr?: unknown;
  _chunkcbErr?: unknown;
}

/**
 * Forwards stdout and stderr of a device to a client at the client's speed. Only one of the two streams writes at a
 * time, because both share the client's window. If both waited for the window, the library would send the data of one
 * stream twice and never send the data of the other stream.
 * @param note called with output before the output is forwarded; the output waits until the call settles
 * @returns resolves when all output is forwarded; never resolves if the channel ends earlier
 */
export async function passOutput(
  channel: ServerChannel,
  stdout: Readable,
  stderr: Readable,
  note: (stream: OutputStream, data: Buffer) => Promise<void>,
): Promise<void> {
  let last: Promise<void> = Promise.resolve();
  const oneAfterAnother = (to: Writable) => async (data: Buffer) => {
    last = last.then(async () => {
      await write(to, data);
      const waiting = channel as unknown as PendingWrite;
      waiting._chunk = waiting._chunkcb = waiting._chunkErr = waiting._chunkcbErr = undefined;
    });
    await last;
  };
  const noted = (stream: OutputStream, to: Writable) => {
    const pass = oneAfterAnother(to);
    return async (data: Buffer) => {
      await note(stream, data);
      await pass(data);
    };
  };
  await Promise.all([
    passOn(stdout, noted("stdout", channel)),
    passOn(stderr, noted("stderr", channel.stderr)),
  ]);
}
