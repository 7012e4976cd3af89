import { createHash, generateKeyPairSync, verify } from "node:crypto";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { isDeepStrictEqual } from "node:util";
import ssh2, { type AuthContext, type ParsedKey, type ServerChannel, type Session } from "ssh2";
import { expect, vi } from "vitest";
import { createWebSocketStream, WebSocket } from "ws";
import { DATA, FIN, RST, SYN, type YamuxFrame, YamuxParser, yamuxFrame } from "../support/YamuxPeer.ts";

type Headers = Readonly<Record<string, string>>;

interface HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly body?: unknown;
}

/** An SSH message with its fields. A string field contains bytes, decoded as Latin-1. */
type SshMessage = Readonly<Record<string, string | number | boolean>> & { readonly message: string };

/** A message of the agent, the service or the test. Exactly one field is set. */
interface Message {
  readonly request?: HttpRequest;
  /** A request to open a WebSocket. */
  readonly upgrade?: { readonly path: string; readonly headers: Headers };
  readonly answer?: { readonly status: number; readonly body?: unknown };
  /** A line of JSON that the agent or the service sends through the tunnel. */
  readonly line?: unknown;
  /** The head of the HTTP request that the service sends on a connection that the agent picked up. */
  readonly head?: string;
  readonly ident?: string;
  /** The algorithms that the sender offers. */
  readonly kexinit?: Readonly<Record<"kex" | "serverHostKey" | "cipher" | "mac", string[]>>;
  readonly ssh?: SshMessage;
  /** A frame of a stream of transport 2. The data is decoded as Latin-1. */
  readonly frame?: Pick<YamuxFrame, "type" | "flags" | "length"> & { readonly data?: string };
  /** The way in which a stream of transport 2 was ended. */
  readonly ended?: "end" | "reset";
  /** The status code with which a WebSocket was closed. */
  readonly close?: number;
  /** An action of the test, or the result of an action. */
  readonly event?: unknown;
}

/**
 * A line of a recording. `on` is the channel of the message: the service's HTTP, the tunnel, the n-th connection picked
 * up in a scene (with transport 2: the n-th stream), or the test.
 */
interface Line {
  readonly scene: string;
  readonly on: string;
  readonly from: "agent" | "gateway" | "test";
  readonly content: Message;
}

/**
 * Patterns of values that differ between runs, and the placeholders that replace these values in a recording. Patterns
 * of longer values come first, because a shorter pattern can match a part of a longer value.
 */
const NAMES: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN[^-]*-----[^-]*-----END[^-]*-----(\\n|\n)?/g, "<public key>"],
  [/\bey[\w-]+\.[\w-]+\.[\w-]+/g, "<token>"],
  [/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, "<tenant>"],
  [/\b([0-9a-f]{2}:){15}[0-9a-f]{2}\b/g, "<fingerprint>"],
  [/\b([0-9a-f]{2}:){5}[0-9a-f]{2}\b/g, "<mac>"],
  [/\b[0-9a-f]{64}\b/g, "<id>"],
  [/revdial\.dialer=[0-9a-f]{32}/g, "revdial.dialer=<instance>"],
  [/uuid=[0-9a-f]{32}/g, "uuid=<dial>"],
  [/\b(127\.0\.0\.1|localhost):\d+/g, "<address>"],
  [/"signature":"[A-Za-z0-9+/=]+"/g, '"signature":"<signature>"'],
];

/** Types of SSH messages that the SSH library sends and processes by itself. The replay skips them. */
const OF_LIBRARY = [
  "EXT_INFO",
  "SERVICE_REQUEST",
  "SERVICE_ACCEPT",
  "CHANNEL_OPEN",
  "CHANNEL_OPEN_CONFIRMATION",
  "CHANNEL_WINDOW_ADJUST",
];

const isOfLibrary = ({ ident, kexinit, ssh }: Message) =>
  ident !== undefined || kexinit !== undefined || OF_LIBRARY.includes(ssh?.message ?? "");

interface Options {
  readonly url: string;
  readonly tenant: string;
  /** The login password, which the recording does not contain. */
  readonly password: string;
  readonly file: URL;
}

/**
 * Replays the messages of a recorded agent. The class sends each agent message as soon as the service has sent all
 * messages that precede it in the recording, and compares the service's messages with the recording. For the SSH
 * sessions, it uses an SSH library with the real agent's algorithms. The comparison ignores how data is split into
 * messages.
 */
export class ReplayedAgent {
  readonly #options: Options;
  readonly #recording: readonly Line[];
  readonly #key = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    publicKeyEncoding: { type: "pkcs1", format: "pem" },
    privateKeyEncoding: { type: "pkcs1", format: "pem" },
  });
  readonly #pickUps = new Map<string, PickUp>();
  /** The streams of transport 2 by their ids. A stream has a connection when it carries SSH. */
  readonly #streams = new Map<number, { readonly on: string; connection?: Duplex }>();
  /** For each placeholder in the recording, the real value in this test run. */
  readonly #known: Record<string, string>;
  #lines: { readonly line: Line; done: boolean }[] = [];
  #tunnel: WebSocket | undefined;
  #loginKey: ParsedKey | undefined;
  #broken = Promise.withResolvers<never>();
  #failure: string | undefined;

  constructor(options: Options) {
    this.#options = options;
    const [, ...lines] = readFileSync(options.file, "utf8").trim().split("\n");
    this.#recording = lines.map((line) => JSON.parse(line) as Line);
    this.#known = {
      "<tenant>": options.tenant,
      "<mac>": "02:00:00:00:00:01",
      "<public key>": this.#key.publicKey,
    };
  }

  /** Replays a scene. The outcome of the scene and all messages of the service must match the recording. */
  async scene(name: string, play: () => Promise<unknown>): Promise<void> {
    this.#pickUps.clear();
    this.#streams.clear();
    this.#failure = undefined;
    this.#broken = Promise.withResolvers();
    this.#broken.promise.catch(() => {});
    this.#lines = this.#recording
      .filter(({ scene, content }) => scene === name && !isOfLibrary(content))
      .map((line) => ({ line, done: false }));
    this.#send();
    this.checkEvent({ outcome: await Promise.race([play(), this.#broken.promise]) });
    const all = vi.waitFor(
      () => expect(this.#lines.filter(({ done }) => !done).map(({ line }) => line)).toEqual([]),
      { timeout: 20_000, interval: 10 },
    );
    await Promise.race([all, this.#broken.promise]);
  }

  /** Compares an action of the test, or the result of an action, with the recording. */
  checkEvent(event: unknown): void {
    this.#compare("test", { event });
  }

  stop(): void {
    for (const pickUp of this.#pickUps.values()) pickUp.terminate();
    this.#tunnel?.terminate();
  }

  /** Returns the next recorded message that the service or the test has to send on the given channel. */
  #next = (on: string) =>
    this.#lines.find(({ line, done }) => !done && line.on === on && line.from !== "agent");

  /** Compares a message of the service, or an event of the test, with the recording. */
  #compare(on: string, content: Message): void {
    let text = JSON.stringify(content);
    for (const [pattern, name] of NAMES) text = text.replaceAll(pattern, name);
    const actual = JSON.parse(text.replaceAll(this.#options.password, "<password>")) as Message;
    const next = this.#next(on);
    if (next && isDeepStrictEqual(next.line.content, actual)) {
      next.done = true;
      this.#send();
    } else if (!text.includes('"keep-alive"')) {
      this.#fail(`${on}: ${text} was sent, but in the recording ${JSON.stringify(next?.line ?? "nothing")}`);
    }
  }

  #fail(reason: string): void {
    this.#failure ??= reason;
    this.#broken.reject(new Error(this.#failure));
    // Closes the connections, so that no SSH client waits for messages that never arrive.
    for (const pickUp of this.#pickUps.values()) pickUp.terminate();
  }

  /** Sends the agent's messages up to the next message of the service. */
  #send(): void {
    for (const entry of this.#lines) {
      if (entry.done) continue;
      if (entry.line.from !== "agent" || this.#failure !== undefined) return;
      entry.done = true;
      this.#sendLine(entry.line);
    }
  }

  #sendLine({ on, content }: Line): void {
    const { request, upgrade, line, frame, ssh, close } = this.#filled(content);
    const pickUp = this.#pickUps.get(on);
    if (request) this.#request(request);
    else if (upgrade && on === "tunnel") this.#connect(upgrade.path, upgrade.headers);
    else if (upgrade) this.#pickUp(on, upgrade.path, upgrade.headers);
    else if (line) this.#tunnel?.send(Buffer.from(`${JSON.stringify(line)}\n`));
    else if (frame) this.#sendFrame(on, frame);
    else if (ssh) pickUp?.send(ssh);
    else if (close) (on === "tunnel" ? this.#tunnel : pickUp)?.terminate();
  }

  /** Replaces the placeholders in recorded content with the values of this run. */
  #filled<T>(content: T): T {
    const fill = (text: string) =>
      Object.entries(this.#known).reduce((filled, [name, value]) => filled.replaceAll(name, value), text);
    return JSON.parse(JSON.stringify(content), (_key, value) =>
      typeof value === "string" ? fill(value) : value,
    );
  }

  #request({ method, path, headers, body }: HttpRequest): void {
    const sent = body === undefined ? "" : JSON.stringify(body);
    const incoming = request(new URL(path, this.#options.url), {
      method,
      headers: { ...headers, ...(sent && { "content-length": Buffer.byteLength(sent) }) },
      agent: false,
    });
    incoming.on("error", (error) => this.#fail(String(error)));
    incoming.on("response", (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (more: string) => {
        text += more;
      });
      answer.on("end", () => {
        const answered = text === "" ? {} : { body: JSON.parse(text) };
        const { token, signature } = answered.body ?? {};
        if (token) this.#known["<token>"] = token;
        if (signature) this.#checkProof((body as { readonly data: string }).data, signature);
        this.#compare("service", { answer: { status: answer.statusCode ?? 0, ...answered } });
      });
    });
    incoming.end(sent);
  }

  /** Checks that the service's signature matches the public key that the service uses for the login. */
  #checkProof(data: string, signature: string): void {
    const pem = this.#loginKey?.getPublicPEM() ?? "";
    if (!pem || !verify("sha256", Buffer.from(data), pem, Buffer.from(signature, "base64")))
      this.#fail("service: the signature is wrong");
  }

  #socket(on: string, path: string, headers: Headers): WebSocket {
    const { authorization, "user-agent": agent } = headers;
    const socket = new WebSocket(new URL(path, this.#options.url).href.replace("http", "ws"), {
      perMessageDeflate: false,
      headers: { ...(agent && { "user-agent": agent }), ...(authorization && { authorization }) },
    });
    socket.on("error", () => {});
    socket.on("upgrade", () => this.#compare(on, { answer: { status: 101 } }));
    socket.on("unexpected-response", (incoming, { statusCode = 0 }) => {
      incoming.destroy();
      this.#compare(on, { answer: { status: statusCode } });
    });
    socket.on("message", (_data, binary) => {
      if (!binary) this.#fail(`${on}: a message is text, which the agent takes for the end`);
    });
    return socket;
  }

  #connect(path: string, headers: Headers): void {
    this.#tunnel = this.#socket("tunnel", path, headers);
    const parser = new YamuxParser();
    this.#tunnel.on("message", (data) => {
      if (path === "/agent/connection") {
        for (const frame of parser.add(data as Buffer)) this.#receiveFrame(frame);
        return;
      }
      for (const line of String(data).trimEnd().split("\n")) {
        const message = JSON.parse(line);
        if (message.connPath)
          this.#known["/ssh/revdial?revdial.dialer=<instance>&uuid=<dial>"] = message.connPath;
        this.#compare("tunnel", { line: message });
      }
    });
  }

  #sendFrame(on: string, { data, ...frame }: NonNullable<Message["frame"]>): void {
    const [id] = [...this.#streams].find(([, stream]) => stream.on === on) ?? [];
    if (id === undefined) throw new Error(`the service has opened no stream for ${on}`);
    this.#tunnel?.send(yamuxFrame({ ...frame, id, ...(data && { data: Buffer.from(data, "latin1") }) }));
  }

  /** Compares the frames of a stream with the recording until the stream carries SSH. */
  #receiveFrame({ type, flags, id, length, data }: YamuxFrame): void {
    if (flags & SYN) this.#streams.set(id, { on: `pick-up ${this.#streams.size + 1}` });
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    const { on, connection } = stream;
    if (connection === undefined) {
      const text = type === DATA ? { data: data.toString("latin1") } : {};
      if (data.toString().startsWith("{")) stream.connection = this.#connectStream(id, on);
      this.#compare(on, { frame: { type, flags, length, ...text } });
      return;
    }
    if (data.length > 0) {
      connection.push(Buffer.from(data));
    }
    if (!(flags & (FIN | RST))) return;
    connection.destroy();
    if (this.#next(on)) this.#compare(on, { ended: flags & RST ? "reset" : "end" });
  }

  /** Starts the SSH server on a stream of transport 2. */
  #connectStream(id: number, on: string): Duplex {
    const connection = new Duplex({
      read: () => {},
      write: (data: Buffer, _encoding, done) => {
        this.#tunnel?.send(yamuxFrame({ id, data }));
        done();
      },
    });
    this.#serve(on, () => connection.destroy()).injectSocket(
      connection.on("error", () => {}) as unknown as Socket,
    );
    return connection;
  }

  #pickUp(on: string, path: string, headers: Headers): void {
    const socket = this.#socket(on, path, headers);
    const server = this.#serve(on, () => socket.terminate());
    const pickUp = this.#pickUps.get(on);
    socket.once("message", (head) => {
      this.#compare(on, { head: String(head) });
      server.injectSocket(createWebSocketStream(socket).on("error", () => {}) as unknown as Socket);
    });
    socket.on("close", (code) => {
      // If the agent closed the connection or the scene is over, the recording contains no later message on this
      // connection.
      if (this.#pickUps.get(on) === pickUp && this.#next(on)) this.#compare(on, { close: code });
    });
  }

  /** Returns the agent's SSH server for a connection. */
  #serve(on: string, terminate: () => void): ssh2.Server {
    const compare = (content: Message) => {
      // The library also reports the end of a channel when the connection ends.
      const isEnd = content.ssh?.message === "CHANNEL_EOF" || content.ssh?.message === "CHANNEL_CLOSE";
      const next = this.#next(on)?.line.content;
      if (!isEnd || next?.ssh !== undefined) this.#compare(on, content);
    };
    const offered = this.#recording.find(
      ({ from, content }) => from === "agent" && content.kexinit !== undefined,
    )?.content;
    const expected = () => String(this.#next(on)?.line.content.ssh?.data ?? "");
    const pickUp = new PickUp(terminate, compare, expected);
    this.#pickUps.set(on, pickUp);
    const { kex = [], serverHostKey = [], cipher = [], mac = [] } = offered?.kexinit ?? {};
    return new ssh2.Server(
      {
        ident: "Go",
        hostKeys: [this.#key.privateKey],
        // The SSH library adds the algorithm names for strict key exchange by itself.
        algorithms: {
          kex: kex.filter((name) => !name.startsWith("kex-strict")),
          serverHostKey,
          cipher,
          hmac: mac,
          compress: ["none"],
        } as ssh2.Algorithms,
      },
      (client) => {
        client.on("error", () => {});
        client.on("authentication", (incoming) => {
          if (incoming.method === "publickey") this.#setLoginKey(incoming.key.data);
          if (incoming.method === "publickey" && incoming.signature) {
            const { blob = Buffer.alloc(0), signature, hashAlgo } = incoming;
            if (!this.#loginKey?.verify(blob, signature, hashAlgo))
              this.#fail(`${on}: the signature is wrong`);
          }
          pickUp.login(incoming);
        });
        client.on("session", (accept) => pickUp.session(accept()));
      },
    );
  }

  #setLoginKey(key: Buffer): void {
    this.#loginKey = ssh2.utils.parseKey(key) as ParsedKey;
    const digest = createHash("md5").update(key).digest("hex");
    this.#known["<fingerprint>"] = (digest.match(/../g) ?? []).join(":");
  }
}

/** A connection that the agent has picked up, with its SSH session. */
class PickUp {
  /** Closes the connection. */
  readonly terminate: () => void;
  readonly #compare: (content: Message) => void;
  readonly #expected: () => string;
  #authentication: AuthContext | undefined;
  #accept: (() => ServerChannel | undefined) | undefined;
  #channel: ServerChannel | undefined;
  #data = "";

  /** @param expected returns the data that the gateway must send next */
  constructor(terminate: () => void, compare: (content: Message) => void, expected: () => string) {
    this.terminate = terminate;
    this.#compare = compare;
    this.#expected = expected;
  }

  login(incoming: AuthContext): void {
    this.#authentication = incoming;
    const { username: user, service, method } = incoming;
    const actual = { message: "USERAUTH_REQUEST", user, service, method };
    if (incoming.method === "password")
      this.#compare({ ssh: { ...actual, change: false, password: incoming.password } });
    else if (incoming.method === "publickey") {
      const signed = incoming.signature !== undefined;
      const algorithm = incoming.hashAlgo
        ? `rsa-sha2-${incoming.hashAlgo.replace("sha", "")}`
        : incoming.key.algo;
      const key = { signed, algorithm, key: "<key>", ...(signed && { signature: "<signature>" }) };
      this.#compare({ ssh: { ...actual, ...key } });
    } else incoming.reject();
  }

  session(session: Session): void {
    const compare = (request: string, accept: unknown, fields: object) => {
      const message = { message: "CHANNEL_REQUEST", channel: 0, request, reply: Boolean(accept), ...fields };
      this.#accept = accept as () => ServerChannel | undefined;
      this.#compare({ ssh: message });
    };
    const size = ({ cols, rows, width, height }: ssh2.WindowChangeInfo) => ({
      columns: cols,
      rows,
      width,
      height,
    });
    session.on("pty", (accept, _reject, info) => {
      const { term } = info as unknown as { readonly term: string };
      compare("pty-req", accept, { term, ...size(info), modes: "<modes>" });
    });
    session.on("window-change", (_accept, _reject, info) => compare("window-change", false, size(info)));
    session.on("shell", (accept) => compare("shell", accept, {}));
    session.on("exec", (accept, _reject, { command }) => compare("exec", accept, { command }));
    session.on("subsystem", (accept, _reject, { name }) => compare("subsystem", accept, { subsystem: name }));
  }

  /** Sends a recorded message of the agent. */
  send({ message, ...fields }: SshMessage): void {
    if (message === "USERAUTH_FAILURE")
      this.#authentication?.reject(String(fields.methods).split(",") as ssh2.AuthenticationType[]);
    else if (message.startsWith("USERAUTH")) this.#authentication?.accept();
    else if (message === "CHANNEL_SUCCESS") this.#open(this.#accept?.());
    else if (message === "CHANNEL_DATA") this.#channel?.write(Buffer.from(String(fields.data), "latin1"));
    else if (message === "CHANNEL_EXTENDED_DATA") this.#channel?.stderr.write(String(fields.data));
    else if (message === "CHANNEL_EOF") this.#channel?.eof();
    else if (message === "CHANNEL_REQUEST") this.#channel?.exit(Number(fields.status));
    // The library also emits "end" when a channel closes. The comparison must not receive this event.
    else if (message === "CHANNEL_CLOSE") this.#channel?.removeAllListeners("end").close();
    else throw new Error(`the agent cannot send ${message}`);
  }

  #open(channel: ServerChannel | undefined): void {
    if (!channel) return;
    this.#channel = channel;
    channel.on("data", (data: Buffer) => this.#receive(data.toString("latin1")));
    channel.on("end", () => this.#compare({ ssh: { message: "CHANNEL_EOF", channel: 0 } }));
    channel.on("close", () => this.#compare({ ssh: { message: "CHANNEL_CLOSE", channel: 0 } }));
  }

  /** Compares received data with the recording. Splits the data into the same parts as the recording. */
  #receive(more: string): void {
    this.#data += more;
    while (this.#data !== "") {
      const expected = this.#expected();
      if (this.#data.length < expected.length && expected.startsWith(this.#data)) return;
      const data = this.#data.slice(0, expected.length || undefined);
      this.#data = this.#data.slice(data.length);
      this.#compare({ ssh: { message: "CHANNEL_DATA", channel: 0, data } });
    }
  }
}
