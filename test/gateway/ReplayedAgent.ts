import { createHash, generateKeyPairSync, verify } from "node:crypto";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import type { Socket } from "node:net";
import { isDeepStrictEqual } from "node:util";
import ssh2, { type AuthContext, type ParsedKey, type ServerChannel, type Session } from "ssh2";
import { expect, vi } from "vitest";
import { createWebSocketStream, WebSocket } from "ws";

type Headers = Readonly<Record<string, string>>;

interface HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly body?: unknown;
}

/** A message of SSH with its fields. Texts are bytes as Latin-1. */
type SshMessage = Readonly<Record<string, string | number | boolean>> & { readonly message: string };

/** What one side sends. Each has one of the fields. */
interface Said {
  readonly request?: HttpRequest;
  /** A request for a WebSocket. */
  readonly upgrade?: { readonly path: string; readonly headers: Headers };
  readonly answer?: { readonly status: number; readonly body?: unknown };
  /** A line of a tunnel. */
  readonly line?: unknown;
  /** The HTTP request on a connection that was picked up. */
  readonly head?: string;
  readonly ident?: string;
  /** The algorithms that a side offers. */
  readonly kexinit?: Readonly<Record<"kex" | "serverHostKey" | "cipher" | "mac", string[]>>;
  readonly ssh?: SshMessage;
  /** A WebSocket is closed. */
  readonly close?: number;
  /** An action of the test, or a result. */
  readonly told?: unknown;
}

/** A line of a recording. `on`: the service's HTTP, the tunnel, the n-th connection picked up in a scene, or the test. */
interface Line {
  readonly scene: string;
  readonly on: string;
  readonly from: "agent" | "gateway" | "test";
  readonly said: Said;
}

/** Values that differ from run to run, and their names in a recording. The longer ones first. */
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

/** What the SSH library sends and reads by itself. */
const OF_LIBRARY = [
  ...["EXT_INFO", "SERVICE_REQUEST", "SERVICE_ACCEPT", "CHANNEL_OPEN", "CHANNEL_OPEN_CONFIRMATION"],
  "CHANNEL_WINDOW_ADJUST",
];

const isOfLibrary = ({ ident, kexinit, ssh }: Said) =>
  ident !== undefined || kexinit !== undefined || OF_LIBRARY.includes(ssh?.message ?? "");

interface Options {
  readonly url: string;
  readonly tenant: string;
  /** The password of the login, which is not in the recording. */
  readonly password: string;
  readonly file: URL;
}

/**
 * Sends what a real agent sent in a recording, each thing once the service has sent all that it sent before it, and
 * compares what the service sends with the recording. A library of SSH encrypts the sessions, with the algorithms of
 * the real agent; how data is split into messages does not matter.
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
  /** The values of this run. */
  readonly #known: Record<string, string>;
  #lines: { readonly line: Line; done: boolean }[] = [];
  #tunnel: WebSocket | undefined;
  #loginKey: ParsedKey | undefined;
  #broken = Promise.withResolvers<never>();
  #wrong: string | undefined;

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

  /** Plays a scene. Its outcome, and all that the service sends, must be as recorded. */
  async scene(name: string, play: () => Promise<unknown>): Promise<void> {
    this.#pickUps.clear();
    this.#wrong = undefined;
    this.#broken = Promise.withResolvers();
    this.#broken.promise.catch(() => {});
    this.#lines = this.#recording
      .filter(({ scene, said }) => scene === name && !isOfLibrary(said))
      .map((line) => ({ line, done: false }));
    this.#send();
    this.tell({ outcome: await Promise.race([play(), this.#broken.promise]) });
    const all = vi.waitFor(
      () => expect(this.#lines.filter(({ done }) => !done).map(({ line }) => line)).toEqual([]),
      { timeout: 20_000, interval: 10 },
    );
    await Promise.race([all, this.#broken.promise]);
  }

  /** An action of the test, or a result. */
  tell(told: unknown): void {
    this.#hear("test", { told });
  }

  stop(): void {
    for (const { socket } of this.#pickUps.values()) socket.terminate();
    this.#tunnel?.terminate();
  }

  /** The next line that the service or the test has to send on a connection. */
  #next = (on: string) =>
    this.#lines.find(({ line, done }) => !done && line.on === on && line.from !== "agent");

  /** Compares what is heard with the recording. */
  #hear(on: string, said: Said): void {
    let text = JSON.stringify(said);
    for (const [pattern, name] of NAMES) text = text.replaceAll(pattern, name);
    const heard = JSON.parse(text.replaceAll(this.#options.password, "<password>")) as Said;
    const next = this.#next(on);
    if (next && isDeepStrictEqual(next.line.said, heard)) {
      next.done = true;
      this.#send();
    } else if (!text.includes('"keep-alive"')) {
      this.#fail(`${on}: ${text} was sent, but in the recording ${JSON.stringify(next?.line ?? "nothing")}`);
    }
  }

  #fail(why: string): void {
    this.#wrong ??= why;
    this.#broken.reject(new Error(this.#wrong));
    // No client shall wait for what does not come.
    for (const { socket } of this.#pickUps.values()) socket.terminate();
  }

  /** Sends what the agent sends next, up to where it waited for the service. */
  #send(): void {
    for (const entry of this.#lines) {
      if (entry.done) continue;
      if (entry.line.from !== "agent" || this.#wrong !== undefined) return;
      entry.done = true;
      this.#sendLine(entry.line);
    }
  }

  #sendLine({ on, said }: Line): void {
    const { request, upgrade, line, ssh, close } = this.#filled(said);
    const pickUp = this.#pickUps.get(on);
    if (request) this.#request(request);
    else if (upgrade && on === "tunnel") this.#connect(upgrade.headers);
    else if (upgrade) this.#pickUp(on, upgrade.path, upgrade.headers);
    else if (line) this.#tunnel?.send(Buffer.from(`${JSON.stringify(line)}\n`));
    else if (ssh) pickUp?.send(ssh);
    else if (close) (on === "tunnel" ? this.#tunnel : pickUp?.socket)?.terminate();
  }

  /** With the values of this run in place of names. */
  #filled<T>(said: T): T {
    const fill = (text: string) =>
      Object.entries(this.#known).reduce((filled, [name, value]) => filled.replaceAll(name, value), text);
    return JSON.parse(JSON.stringify(said), (_key, value) =>
      typeof value === "string" ? fill(value) : value,
    );
  }

  #request({ method, path, headers, body }: HttpRequest): void {
    const sent = body === undefined ? "" : JSON.stringify(body);
    const asked = request(new URL(path, this.#options.url), {
      method,
      headers: { ...headers, ...(sent && { "content-length": Buffer.byteLength(sent) }) },
      agent: false,
    });
    asked.on("error", (error) => this.#fail(String(error)));
    asked.on("response", (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (more: string) => {
        text += more;
      });
      answer.on("end", () => {
        const answered = text === "" ? {} : { body: JSON.parse(text) };
        const { token, signature } = answered.body ?? {};
        if (token) this.#known["<token>"] = token;
        if (signature) this.#checkProof((body as { readonly data: string }).data, signature);
        this.#hear("service", { answer: { status: answer.statusCode ?? 0, ...answered } });
      });
    });
    asked.end(sent);
  }

  /** The service has to sign with the key that it logs in with. */
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
    socket.on("upgrade", () => this.#hear(on, { answer: { status: 101 } }));
    socket.on("unexpected-response", (asked, { statusCode = 0 }) => {
      asked.destroy();
      this.#hear(on, { answer: { status: statusCode } });
    });
    socket.on("message", (_data, binary) => {
      if (!binary) this.#fail(`${on}: a message is text, which the agent takes for the end`);
    });
    return socket;
  }

  #connect(headers: Headers): void {
    this.#tunnel = this.#socket("tunnel", "/ssh/connection", headers);
    this.#tunnel.on("message", (data) => {
      for (const line of String(data).trimEnd().split("\n")) {
        const message = JSON.parse(line);
        if (message.connPath)
          this.#known["/ssh/revdial?revdial.dialer=<instance>&uuid=<dial>"] = message.connPath;
        this.#hear("tunnel", { line: message });
      }
    });
  }

  #pickUp(on: string, path: string, headers: Headers): void {
    const socket = this.#socket(on, path, headers);
    const hear = (said: Said) => this.#hear(on, said);
    socket.once("message", (head) => {
      hear({ head: String(head) });
      server.injectSocket(createWebSocketStream(socket).on("error", () => {}) as unknown as Socket);
    });
    socket.on("close", (code) => {
      // Nothing is left where the agent has closed it, or its scene is over.
      if (this.#pickUps.get(on)?.socket === socket && this.#next(on)) hear({ close: code });
    });
    const offered = this.#recording.find(
      ({ from, said }) => from === "agent" && said.kexinit !== undefined,
    )?.said;
    const pickUp = new PickUp(socket, hear, () => String(this.#next(on)?.line.said.ssh?.data ?? ""));
    this.#pickUps.set(on, pickUp);
    const { kex = [], serverHostKey = [], cipher = [], mac = [] } = offered?.kexinit ?? {};
    const server = new ssh2.Server(
      {
        ident: "Go",
        hostKeys: [this.#key.privateKey],
        // The library adds by itself that it exchanges keys strictly.
        algorithms: {
          kex: kex.filter((name) => !name.startsWith("kex-strict")),
          ...{ serverHostKey, cipher, hmac: mac, compress: ["none"] },
        } as ssh2.Algorithms,
      },
      (client) => {
        client.on("error", () => {});
        client.on("authentication", (asked) => {
          if (asked.method === "publickey") this.#show(asked.key.data);
          if (asked.method === "publickey" && asked.signature) {
            const { blob = Buffer.alloc(0), signature, hashAlgo } = asked;
            if (!this.#loginKey?.verify(blob, signature, hashAlgo))
              this.#fail(`${on}: the signature is wrong`);
          }
          pickUp.login(asked);
        });
        client.on("session", (accept) => pickUp.session(accept()));
      },
    );
  }

  #show(key: Buffer): void {
    this.#loginKey = ssh2.utils.parseKey(key) as ParsedKey;
    const digest = createHash("md5").update(key).digest("hex");
    this.#known["<fingerprint>"] = (digest.match(/../g) ?? []).join(":");
  }
}

/** A connection that the agent has picked up, with the SSH session in it. */
class PickUp {
  readonly socket: WebSocket;
  readonly #hear: (said: Said) => void;
  readonly #wanted: () => string;
  #asked: AuthContext | undefined;
  #accept: (() => ServerChannel | undefined) | undefined;
  #channel: ServerChannel | undefined;
  #data = "";

  /** @param wanted the data that the gateway has to send next */
  constructor(socket: WebSocket, hear: (said: Said) => void, wanted: () => string) {
    this.socket = socket;
    this.#hear = hear;
    this.#wanted = wanted;
  }

  login(asked: AuthContext): void {
    this.#asked = asked;
    const { username: user, service, method } = asked;
    const heard = { message: "USERAUTH_REQUEST", user, service, method };
    if (asked.method === "password")
      this.#hear({ ssh: { ...heard, change: false, password: asked.password } });
    else if (asked.method === "publickey") {
      const signed = asked.signature !== undefined;
      const algorithm = asked.hashAlgo ? `rsa-sha2-${asked.hashAlgo.replace("sha", "")}` : asked.key.algo;
      const key = { signed, algorithm, key: "<key>", ...(signed && { signature: "<signature>" }) };
      this.#hear({ ssh: { ...heard, ...key } });
    } else asked.reject();
  }

  session(session: Session): void {
    const hear = (request: string, accept: unknown, fields: object) => {
      const message = { message: "CHANNEL_REQUEST", channel: 0, request, reply: Boolean(accept), ...fields };
      this.#accept = accept as () => ServerChannel | undefined;
      this.#hear({ ssh: message });
    };
    const size = ({ cols, rows, width, height }: ssh2.WindowChangeInfo) => ({
      ...{ columns: cols, rows, width, height },
    });
    session.on("pty", (accept, _reject, info) => {
      const { term } = info as unknown as { readonly term: string };
      hear("pty-req", accept, { term, ...size(info), modes: "<modes>" });
    });
    session.on("window-change", (_accept, _reject, info) => hear("window-change", false, size(info)));
    session.on("shell", (accept) => hear("shell", accept, {}));
    session.on("exec", (accept, _reject, { command }) => hear("exec", accept, { command }));
    session.on("subsystem", (accept, _reject, { name }) => hear("subsystem", accept, { subsystem: name }));
  }

  /** Sends what the agent sends. */
  send({ message, ...fields }: SshMessage): void {
    if (message === "USERAUTH_FAILURE")
      this.#asked?.reject(String(fields.methods).split(",") as ssh2.AuthenticationType[]);
    else if (message.startsWith("USERAUTH")) this.#asked?.accept();
    else if (message === "CHANNEL_SUCCESS") this.#open(this.#accept?.());
    else if (message === "CHANNEL_DATA") this.#channel?.write(Buffer.from(String(fields.data), "latin1"));
    else if (message === "CHANNEL_REQUEST") this.#channel?.exit(Number(fields.status));
    // The library also reports an end when a channel closes.
    else if (message === "CHANNEL_CLOSE") this.#channel?.removeAllListeners("end").close();
    else throw new Error(`the agent cannot send ${message}`);
  }

  #open(channel: ServerChannel | undefined): void {
    if (!channel) return;
    this.#channel = channel;
    channel.on("data", (data: Buffer) => this.#receive(data.toString("latin1")));
    channel.on("end", () => this.#hear({ ssh: { message: "CHANNEL_EOF", channel: 0 } }));
    channel.on("close", () => this.#hear({ ssh: { message: "CHANNEL_CLOSE", channel: 0 } }));
  }

  /** Compares data as it was split in the recording. */
  #receive(more: string): void {
    this.#data += more;
    while (this.#data !== "") {
      const wanted = this.#wanted();
      if (this.#data.length < wanted.length && wanted.startsWith(this.#data)) return;
      const data = this.#data.slice(0, wanted.length || undefined);
      this.#data = this.#data.slice(data.length);
      this.#hear({ ssh: { message: "CHANNEL_DATA", channel: 0, data } });
    }
  }
}
