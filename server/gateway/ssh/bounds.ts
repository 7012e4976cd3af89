import type { EventEmitter } from "node:events";
import type { Duplex, Readable, Writable } from "node:stream";
import type { Client, ClientChannel, Connection, ServerChannel, Session } from "ssh2";
import type { OutputStream } from "../../features/sessions/addEntries.ts";

/** The smallest maximum packet size that a peer may ask for, in bytes: below it, the library sends packet by packet. */
const SMALLEST_PACKET = 1024;
/** Packets that a client may send before it is logged in: six passwords, forty questions about keys, and some more. */
const PACKETS_BEFORE_LOGIN = 200;
/** Bytes that a peer may leave unread before its connection is read no further. */
const UNREAD = 256 * 1024;
/** Bytes that a client may leave unread before login. Then its connection ends. */
const UNREAD_BEFORE_LOGIN = 64 * 1024;
/** `SSH_OPEN_RESOURCE_SHORTAGE` (RFC 4254, section 5.1). */
const RESOURCE_SHORTAGE = 4;

interface Incoming {
  readonly window: number;
  readonly state: "open" | "eof" | "closed";
}

/** What the library knows of a channel; a session's own channel comes with its first request. */
interface LibraryChannel {
  readonly incoming?: Incoming;
  readonly _channel?: { readonly incoming: Incoming };
  /** Of a session. */
  readonly _chanInfo?: { readonly outgoing: { readonly id: number } };
}

interface OpenedChannel {
  readonly sender: number;
  readonly packetSize: number;
}

type Handler = (protocol: LibraryProtocol, ...values: never[]) => void;

interface LibraryProtocol {
  _onPacket: () => void;
  /** The key exchange that goes on, or was the last one. */
  readonly _kex: object | undefined;
  readonly _handlers: Record<string, Handler>;
  /** Packets that wait for the end of a key exchange; undefined without one. */
  readonly _queue: readonly unknown[] | undefined;
  channelClose(channel: number): void;
  requestFailure(): void;
  signal(channel: number, name: string): void;
  channelOpenFail(recipient: number, reason: number, description: string): void;
}

/** The parts of the library's connections that it keeps for itself. Its version is pinned for their sake. */
interface Internals {
  readonly _sock: Duplex;
  readonly _protocol: LibraryProtocol;
  readonly _chanMgr: {
    get(id: number): LibraryChannel | undefined;
    remove(id: number): void;
  };
}

/** @throws Error this version of the library lacks one of them, so that nothing would be bounded */
function internalsOf(connection: Client | Connection): Internals {
  const { _sock, _protocol, _chanMgr } = connection as unknown as Partial<Internals>;
  const complete = _sock && _chanMgr && _protocol?._onPacket && _protocol._handlers?.CHANNEL_DATA;
  if (!complete) throw new Error("this version of ssh2 cannot be bounded");
  return { _sock, _protocol, _chanMgr };
}

/** The name of the software at the other end of a channel. */
export const softwareOf = (channel: ClientChannel): string =>
  (channel as unknown as { readonly _client: { readonly _remoteVer: string } })._client._remoteVer;

export const socketOf = (connection: Client | Connection): Duplex => internalsOf(connection)._sock;

/** Whether the peer has said how it wants to exchange keys. */
export const hasBegunExchange = (connection: Client | Connection): boolean =>
  internalsOf(connection)._protocol._kex !== undefined;

/** Stops the reading of a connection, for one reason or several. */
export class Brake {
  readonly #socket: Duplex;
  readonly #reasons = new Set<string>();

  constructor(socket: Duplex) {
    this.#socket = socket;
  }

  /**
   * Reads nothing more until something has settled. While the same reason holds already, nothing changes.
   * @param until called if the reason does not hold yet
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

/** Settles once a stream takes more, or takes nothing ever again. */
export async function drained(stream: Writable): Promise<void> {
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
 * Bounds what the other end of a connection can make this process do, where the library trusts it: packets and unread
 * answers, above all before login; windows, which it grants and never enforces; maximum packet sizes.
 * @param isLoggedIn whether the peer has proved who it is; agents have, before SSH begins
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
    if (socket.writableLength >= UNREAD) brake.hold("unread answers", () => drained(socket));
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
    // The library would keep a session on which nothing was requested, and close it any number of times.
    channels.remove(recipient);
    of.channelClose(session.outgoing.id);
  };
  // An OpenSSH server announces its keys. The library would parse hundreds of them, and keep each until they are proved.
  check("GLOBAL_REQUEST", (name: string, wantsReply: boolean) => {
    if (name !== "hostkeys-00@openssh.com") return true;
    if (wantsReply) protocol.requestFailure();
    return false;
  });
  check("CHANNEL_DATA", isInWindow);
  check("CHANNEL_EXTENDED_DATA", isInWindow);
  return brake;
}

/** Whether what is written to a connection waits, for the socket or for the end of a key exchange. */
export function isCongested(connection: Client | Connection): boolean {
  const { _sock: socket, _protocol: protocol } = internalsOf(connection);
  return socket.writableNeedDrain || protocol._queue !== undefined;
}

/** Settles once what is written to a connection no longer waits. */
export async function relieved(connection: Client | Connection): Promise<void> {
  await exchanged(connection);
  await drained(socketOf(connection));
}

/** Settles once no key exchange is in progress: the library keeps what is written during one. */
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

/** The states of the sending direction of the library's channels in which it drops what is written, and reports nothing. */
const SHUT: ReadonlySet<unknown> = new Set(["eof", "closing", "closed"]);

/**
 * Writes to a stream, and settles once it has taken the data; a channel also waits for its connection. What the other
 * end can no longer receive is dropped.
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

/** Lets a session take requests after the end of its client's input. The library refuses them all, also signals. */
export function takeLateRequests(session: Session): void {
  session.on("eof", () => {
    (session as { _ending?: boolean })._ending = false;
  });
}

/**
 * Sends a signal on a channel. The library drops it once the input of the channel has ended.
 * @param name one of RFC 4254, section 6.10
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

/** Ignores errors of a channel: it closes after each. */
export function ignoreErrors(channel: { readonly stderr: EventEmitter } & EventEmitter): void {
  for (const stream of [channel, channel.stderr]) stream.on("error", () => {});
}

/**
 * Passes all data of a stream on, as fast as it is taken, without its end.
 * @param take settles once it takes more
 */
export async function passOn(from: Readable, take: (data: Buffer) => Promise<void>): Promise<void> {
  try {
    for await (const data of from.iterator({ destroyOnReturn: false })) await take(data as Buffer);
  } catch {
    // Reading ends early when the other end hangs up.
  }
}

/** The state of a waiting write, which the library keeps after the write. */
interface PendingWrite {
  _chunk?: unknown;
  _chunkcb?: unknown;
  _chunkErr?: unknown;
  _chunkcbErr?: unknown;
}

/**
 * Passes both outputs of a device to a client, as fast as it takes them. They share the client's window, and the library
 * loses count where both wait for it: one would be sent twice, and the other never. So they take turns.
 * @param note called with output before it is passed on; the output waits for it
 * @returns resolves when all is passed on; never, if the channel ends before
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
