import { createPrivateKey, createPublicKey, hash, type KeyObject, sign } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { json } from "node:stream/consumers";
import { devices } from "@gatehouse-access/sdk/contract";
import ssh2, { type Client, type ConnectConfig, type ParsedKey } from "ssh2";
import { vi } from "vitest";
import { createWebSocketStream, type WebSocket, WebSocketServer } from "ws";
import type { z } from "zod";
import { type Listening, listening } from "../support/listening.ts";

/** The tenant that agents enroll in. */
export const TENANT = "11111111-2222-4333-8444-555555555555";
/** The device name that the gateway returns to agents. */
export const DEVICE = "edge-01";

/** Creates an RSA private key with which clients log in to the device, in PEM format. */
export const newRsaKey = (): string => ssh2.utils.generateKeyPairSync("rsa", { bits: 2048 }).private;

function parsed(key: string): ParsedKey {
  const read = ssh2.utils.parseKey(key);
  if (read instanceof Error) throw read;
  return read;
}

/** The challenge that every device receives. */
export const CHALLENGE = "sign this";

const blobOf = (key: string): string => parsed(key).getPublicSSH().toString("base64");

/** A message between the gateway and the agent on the tunnel's WebSocket: one line of JSON. */
interface Line {
  readonly command: string;
  readonly connPath?: string;
  readonly err?: string;
}

/** A response that refuses a request. */
interface Refusal {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** @default "{}" */
  readonly body?: string;
}

/**
 * A fake of the Gatehouse service that implements only what an agent needs. It records the agent's messages, and tests
 * control its responses.
 */
export class FakeGateway {
  /** Bodies of the enrollment requests, parsed by the schema of the contract. */
  readonly enrollments: z.output<typeof devices.authDevice.body>[] = [];
  /** True if the gateway sends challenges to devices, as services newer than 0.19 do. */
  challenges = true;
  /** The service key in responses to enrollments; undefined if the responses contain no key. */
  agentKey: string | undefined;
  /** The response to every enrollment; undefined: the gateway enrolls the device. */
  enrollmentRefusal: Refusal | undefined;
  /** The response to every request to open a tunnel; undefined: the gateway checks the token. */
  tunnelRefusal: Refusal | undefined;
  /** Texts that the gateway signed with a login's private key, at the agent's request. */
  readonly signed: string[] = [];
  /** Status codes of the gateway's responses to the agent's requests to open a tunnel. */
  readonly tunnels: number[] = [];
  /** Lines that the agent sent through its tunnels. */
  readonly lines: Line[] = [];
  /** Errors that occurred while the gateway handled requests and messages. */
  readonly faults: string[] = [];
  readonly #keys = new Map<string, KeyObject>();
  readonly #sockets = new WebSocketServer({ noServer: true });
  readonly #pickUps = new Map<string, (socket: WebSocket) => void>();
  #listening: Listening | undefined;
  #tunnel: WebSocket | undefined;
  #dials = 0;
  #token = "";

  static async start(): Promise<FakeGateway> {
    const gateway = new FakeGateway();
    const server = createServer((request, response) => {
      gateway.#answer(request, response).catch((error: Error) => {
        gateway.faults.push(`${request.url}: ${error.message}`);
        response.writeHead(400).end("{}");
      });
    });
    server.on("upgrade", (request, socket, head) => gateway.#upgrade(request, socket, head));
    gateway.#listening = await listening(server);
    return gateway;
  }

  get url(): string {
    return this.#listening?.url ?? "";
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets.clients) socket.terminate();
    await this.#listening?.stop();
  }

  /**
   * From now on, answers the agent's signature requests for the public key of this private key.
   * @param signing a different private key that creates the signatures instead, so that they are wrong
   */
  hold(privateKey: string, signing = privateKey): void {
    const key = parsed(privateKey);
    const fingerprint = hash("md5", key.getPublicSSH()).match(/../g)?.join(":") ?? "";
    this.#keys.set(fingerprint, createPrivateKey(parsed(signing).getPrivatePEM()));
  }

  /** Makes the agent's current token invalid. */
  revokeToken(): void {
    this.#token = "";
  }

  closeTunnel(): void {
    this.#tunnel?.terminate();
  }

  /** Sends a line through the tunnel, split into two messages. */
  sendLine(line: Line): void {
    const bytes = Buffer.from(`${JSON.stringify(line)}\n`);
    this.#tunnel?.send(bytes.subarray(0, 7));
    this.#tunnel?.send(bytes.subarray(7));
  }

  /** Announces a connection to the agent, and returns the WebSocket with which the agent picks up the connection. */
  async dial(): Promise<WebSocket> {
    this.#dials += 1;
    const uuid = `dial-${this.#dials}`;
    const pickedUp = new Promise<WebSocket>((resolve) => this.#pickUps.set(uuid, resolve));
    this.sendLine({ command: "conn-ready", connPath: `/ssh/revdial?revdial.dialer=0123&uuid=${uuid}` });
    return pickedUp;
  }

  /** Opens a connection to the agent, on which the agent is the SSH server. */
  async open(session: string): Promise<Duplex> {
    const stream = createWebSocketStream(await this.dial());
    stream.on("error", () => {});
    stream.write(`GET /ssh/${session} HTTP/1.1\r\nHost: gateway\r\n\r\n`);
    return stream;
  }

  /** Sends a request on a new connection, and returns the response. */
  async request(path: string): Promise<string> {
    const socket = await this.dial();
    const answers: Buffer[] = [];
    socket.on("message", (data) => answers.push(data as Buffer));
    socket.send(Buffer.from(`GET ${path} HTTP/1.1\r\nHost: gateway\r\n\r\n`));
    await once(socket, "close");
    return Buffer.concat(answers).toString();
  }

  /**
   * Logs in over a connection.
   * @param stream the connection; default: a new connection
   * @throws Error the login was rejected
   */
  async login(config: ConnectConfig, stream?: Duplex): Promise<Client> {
    const client = new ssh2.Client();
    const ready = new Promise<Client>((resolve, reject) => {
      client.on("ready", () => resolve(client));
      client.on("error", reject);
      client.on("close", () => reject(new Error("closed")));
    });
    const { public_key: pem } = this.enrollments.at(-1) ?? { public_key: "" };
    const { n } = createPublicKey(pem).export({ format: "jwk" });
    client.connect({
      sock: stream ?? (await this.open(`session-${this.#dials + 1}`)),
      hostVerifier: (key: Buffer) => key.includes(Buffer.from(n ?? "", "base64url")),
      ...config,
    });
    return ready;
  }

  /** Resolves when the agent has opened the given number of tunnels. */
  async tunneled(count: number): Promise<void> {
    await vi.waitFor(
      () => {
        const open = this.tunnels.filter((status) => status === 101).length;
        if (open < count) throw new Error(`${open} tunnels so far; ${this.faults.join("; ")}`);
      },
      { timeout: 30_000, interval: 10 },
    );
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.url === "/api/devices/challenge" && this.challenges) {
      response.setHeader("Content-Type", "application/json").end(JSON.stringify({ challenge: CHALLENGE }));
      return;
    }
    if (request.url === "/api/devices/challenge") {
      response.writeHead(404).end("{}");
      return;
    }
    if (request.url === "/api/devices/auth") {
      this.enrollments.push(devices.authDevice.body.parse(await json(request)));
      if (this.enrollmentRefusal !== undefined) {
        const { status, headers, body = "{}" } = this.enrollmentRefusal;
        response.writeHead(status, headers).end(body);
        return;
      }
      this.#token = `token-${this.enrollments.length}`;
      const answer = {
        uid: "uid",
        token: this.#token,
        name: DEVICE,
        namespace: "lab",
        ...(this.agentKey !== undefined && { agent_key: blobOf(this.agentKey) }),
      };
      response.setHeader("Content-Type", "application/json").end(JSON.stringify(answer));
      return;
    }
    if (request.url !== "/api/auth/ssh" || !this.#isDevice(request)) throw new Error("no such request");
    const { fingerprint, data } = devices.authSshPublicKey.body.parse(await json(request));
    const key = this.#keys.get(fingerprint);
    if (key === undefined) {
      response.writeHead(404).end("{}");
      return;
    }
    this.signed.push(data);
    const signature = sign("sha256", Buffer.from(data), key).toString("base64");
    response.setHeader("Content-Type", "application/json").end(JSON.stringify({ signature }));
  }

  #isDevice({ headers }: IncomingMessage): boolean {
    return this.#token !== "" && headers.authorization === `Bearer ${this.#token}`;
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const url = new URL(request.url ?? "", this.url);
    if (url.pathname === "/ssh/connection") {
      const refusal = this.tunnelRefusal ?? (this.#isDevice(request) ? undefined : { status: 401 });
      this.tunnels.push(refusal?.status ?? 101);
      if (refusal) refuse(socket, refusal);
      else this.#sockets.handleUpgrade(request, socket, head, (tunnel) => this.#hold(tunnel));
      return;
    }
    const pickedUp = this.#pickUps.get(url.searchParams.get("uuid") ?? "");
    if (request.headers.authorization !== undefined) this.faults.push("a pick-up with a token");
    if (pickedUp) this.#sockets.handleUpgrade(request, socket, head, pickedUp);
    else refuse(socket, { status: 400 });
  }

  #hold(tunnel: WebSocket): void {
    this.#tunnel = tunnel;
    tunnel.on("message", (data, binary) => {
      if (!binary) this.faults.push("a text message");
      for (const line of String(data).trimEnd().split("\n")) this.lines.push(JSON.parse(line));
    });
  }
}

/** Answers a request to open a WebSocket with a refusal. */
function refuse(socket: Duplex, { status, headers = {} }: Refusal): void {
  const lines = Object.entries({ "Content-Length": "0", ...headers }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  socket.end([`HTTP/1.1 ${status} Refused`, ...lines, "", ""].join("\r\n"));
}
