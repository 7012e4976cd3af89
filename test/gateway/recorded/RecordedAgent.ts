import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { setTimeout as pass } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { WebSocket, WebSocketServer } from "ws";
import { type Listening, listening } from "../../support/listening.ts";
import { type Line, named, type Said, type SceneAgent, type SceneOptions, spoken } from "./exchange.ts";
import { decode, Introduction } from "./sshMessages.ts";

/** What a service that is recorded is started with. */
export const tapped = (folder: string): Readonly<Record<string, string>> => ({
  NODE_OPTIONS: `--import=${fileURLToPath(new URL("tap.ts", import.meta.url))}`,
  TAP_FILE: join(folder, "tap"),
});

/** How long nothing is said at the end of a scene, in milliseconds. A recording is made by hand: it may wait. */
const QUIET = 500;

interface RecordingOptions extends SceneOptions {
  /** The agent's program. */
  readonly command: string;
  /** See {@link tapped}. */
  readonly folder: string;
  /** What the recording is written to. */
  readonly file: string;
}

type Write = (from: "agent" | "gateway", said: Said) => void;
type Written = Line & { readonly at: bigint };

/**
 * The real agent, behind a proxy that writes down what it and the service say. What passes encrypted is written by the
 * service itself, see tap.ts.
 */
export class RecordedAgent implements SceneAgent {
  readonly wrong = new Promise<never>(() => {});
  readonly #options: RecordingOptions;
  readonly #lines: Written[] = [];
  readonly #key = mkdtempSync(join(tmpdir(), "recorded-agent-"));
  /** The scene and the number in it of each connection that was picked up, in their order. */
  readonly #pickedUp: { readonly scene: string; readonly on: string }[] = [];
  readonly #sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false });
  #scene = "";
  #pickUps = 0;
  #refuses = false;
  #proxy: Listening | undefined;
  #child: ChildProcess | undefined;
  #tunnel: WebSocket | undefined;
  #session = "";

  constructor(options: RecordingOptions) {
    this.#options = options;
  }

  begin(scene: string): void {
    this.#scene = scene;
    this.#pickUps = 0;
    if (this.#child === undefined) void this.#start();
  }

  tell(told: unknown): void {
    this.#write({ on: "test", from: "test", said: { told } });
    const does: Readonly<Record<string, () => void>> = {
      "the agent cannot pick up": () => {
        this.#refuses = true;
      },
      "the agent is to close the connection": () => this.#closeById(),
      "the tunnel is cut": () => this.#tunnel?.terminate(),
    };
    does[String(told)]?.();
  }

  async done(): Promise<void> {
    for (let length = -1; length !== this.#lines.length; await pass(QUIET)) length = this.#lines.length;
  }

  async stop(): Promise<void> {
    if (this.#child) {
      const ended = once(this.#child, "exit");
      this.#child.kill("SIGTERM");
      await ended;
    }
    await this.#proxy?.stop();
    rmSync(this.#key, { recursive: true });
    const { file, folder, password } = this.#options;
    const all = [...this.#lines, ...this.#tapped(join(folder, "tap"))].sort((a, b) => (a.at < b.at ? -1 : 1));
    const header = {
      made: `with agent 0.19.0 on ${new Date().toISOString().slice(0, 10)}: a proxy between it and the service wrote down what they said, and the service the messages of SSH`,
    };
    const lines = all.filter((line) => isSaid(line, all)).map(({ at, ...line }) => named(line, password));
    const text = [header, ...lines].map((line) => JSON.stringify(line)).join("\n");
    // In the prompt of a shell.
    writeFileSync(file, `${text.replaceAll(`@${hostname()}:`, "@edge-01:")}\n`);
  }

  async #start(): Promise<void> {
    const server = createServer((incoming, outgoing) => this.#forward(incoming, outgoing));
    server.on("upgrade", (incoming, socket, head) => this.#upgrade(incoming, socket, head));
    this.#proxy = await listening(server);
    this.#child = spawn(this.#options.command, [], {
      stdio: "ignore",
      env: {
        PATH: process.env.PATH,
        SHELLHUB_SERVER_ADDRESS: this.#proxy.url,
        SHELLHUB_TENANT_ID: this.#options.tenant,
        SHELLHUB_PRIVATE_KEY: join(this.#key, "key"),
        SHELLHUB_PREFERRED_HOSTNAME: "edge-01",
        SHELLHUB_KEEPALIVE_INTERVAL: "1",
      },
    });
  }

  #write({ scene = this.#scene, ...line }: Omit<Line, "scene"> & { readonly scene?: string }): void {
    this.#lines.push({ at: process.hrtime.bigint(), scene, ...line });
  }

  #target({ url = "" }: IncomingMessage): URL {
    return new URL(url, this.#options.url);
  }

  #forward(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { method = "", url: path = "", headers } = incoming;
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const sent = Buffer.concat(chunks);
      const body = sent.length > 0 ? { body: JSON.parse(String(sent)) } : {};
      this.#write({
        on: "service",
        from: "agent",
        said: { request: { method, path, headers: spoken(headers), ...body } },
      });
      const asked = request(this.#target(incoming), { method, headers }, (answer) => {
        const received: Buffer[] = [];
        answer.on("data", (chunk: Buffer) => received.push(chunk));
        answer.on("end", () => {
          const text = String(Buffer.concat(received));
          const status = answer.statusCode ?? 0;
          this.#write({
            on: "service",
            from: "gateway",
            said: { answer: { status, ...(text && { body: JSON.parse(text) }) } },
          });
          outgoing.writeHead(status, { "content-type": "application/json" }).end(text);
        });
      });
      asked.end(sent);
    });
  }

  #upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void {
    const { url: path = "", headers } = incoming;
    const tunnel = path === "/ssh/connection";
    if (!tunnel && this.#refuses) {
      this.#refuses = false;
      socket.end("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n");
      return;
    }
    if (path.includes("dialer=recorder")) {
      this.#sockets.handleUpgrade(incoming, socket, head, (agent) => this.#askToClose(agent));
      return;
    }
    const scene = this.#scene;
    if (!tunnel) this.#pickUps += 1;
    const on = tunnel ? "tunnel" : `pick-up ${this.#pickUps}`;
    const write: Write = (from, said) => this.#write({ scene: tunnel ? this.#scene : scene, on, from, said });
    write("agent", { upgrade: { path, headers: spoken(headers) } });
    const { authorization } = headers;
    const service = new WebSocket(this.#target(incoming).href.replace("http", "ws"), {
      perMessageDeflate: false,
      autoPong: false,
      headers: authorization ? { authorization } : {},
    });
    service.on("error", () => {});
    service.on("unexpected-response", (_request, answer) => {
      const status = answer.statusCode ?? 0;
      write("gateway", { answer: { status } });
      socket.end(`HTTP/1.1 ${status} Refused\r\nContent-Length: 0\r\n\r\n`);
    });
    service.on("open", () => {
      service.pause();
      write("gateway", { answer: { status: 101 } });
      this.#sockets.handleUpgrade(incoming, socket, head, (agent) => {
        if (tunnel) this.#tunnel = agent;
        else this.#pickedUp.push({ scene, on });
        this.#join(agent, service, write, tunnel ? hearLine : this.#hearStream(write));
        service.resume();
      });
    });
  }

  #join(
    agent: WebSocket,
    service: WebSocket,
    write: Write,
    hear: (from: "agent" | "gateway", data: Buffer, write: Write) => void,
  ): void {
    const both = [
      ["agent", agent, service],
      ["gateway", service, agent],
    ] as const;
    let open = true;
    for (const [from, near, far] of both) {
      near.on("message", (data, binary) => {
        hear(from, data as Buffer, write);
        far.send(data, { binary });
      });
      near.on("ping", (data) => far.ping(data));
      near.on("pong", (data) => far.pong(data));
      near.on("error", () => {});
      near.on("close", (code) => {
        if (open) write(from, { close: code });
        open = false;
        far.terminate();
      });
    }
  }

  #hearStream(write: Write) {
    const sides = {
      agent: new Introduction((said) => write("agent", said)),
      gateway: new Introduction((said) => write("gateway", said)),
    };
    let begun = false;
    return (from: "agent" | "gateway", data: Buffer) => {
      if (begun) sides[from].read(data);
      else {
        write(from, { head: String(data) });
        this.#session = /GET (\S+)/.exec(String(data))?.[1] ?? "";
      }
      begun = true;
    };
  }

  /** Has the agent close its connection, as the service of 0.19 does it. */
  #closeById(): void {
    const connPath = "/ssh/revdial?revdial.dialer=recorder&uuid=0";
    this.#tunnel?.send(Buffer.from(`${JSON.stringify({ command: "conn-ready", connPath })}\n`));
  }

  #askToClose(agent: WebSocket): void {
    agent.send(
      Buffer.from(`GET ${this.#session.replace("/ssh/", "/ssh/close/")} HTTP/1.1\r\nHost: gateway\r\n\r\n`),
    );
    agent.on("message", (answer) => {
      const status = Number(String(answer).split(" ")[1]);
      this.#write({ on: "closing", from: "agent", said: { answer: { status } } });
      agent.terminate();
    });
  }

  #tapped(file: string): Written[] {
    const lines = readFileSync(file, "utf8").trim().split("\n");
    return lines.map((line) => {
      const { at, connection, from, payload } = JSON.parse(line);
      const where = this.#pickedUp[connection - 1];
      if (where === undefined) throw new Error(`connection ${connection} was never picked up`);
      return { at: BigInt(at), ...where, from, said: { ssh: decode(Buffer.from(payload, "base64")) } };
    });
  }
}

function hearLine(from: "agent" | "gateway", data: Buffer, write: Write): void {
  for (const line of String(data).trimEnd().split("\n")) write(from, { line: JSON.parse(line) });
}

/** Whether a line is of a recording: each time it must be the same. */
function isSaid({ scene, on, from, at, said }: Written, all: readonly Written[]): boolean {
  const text = JSON.stringify(said);
  // Keep-alives come by the clock; those of the first scene show what they are.
  if (scene !== "start" && text.includes('"keep-alive"')) return false;
  // Windows grow as it happens.
  if (from === "gateway" && text.includes("CHANNEL_WINDOW_ADJUST")) return false;
  // What is written when a connection is closed already leaves nobody.
  return !all.some(
    (line) => line.scene === scene && line.on === on && line.at < at && "close" in line.said && "ssh" in said,
  );
}
