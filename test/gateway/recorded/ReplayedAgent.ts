import { generateKeyPairSync, verify } from "node:crypto";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { isDeepStrictEqual } from "node:util";
import { vi } from "vitest";
import { WebSocket } from "ws";
import { fingerprintOf } from "../../../server/gateway/ssh/signature.ts";
import { type Line, named, type Of, type Said, type SceneAgent, type SceneOptions } from "./exchange.ts";
import { PickUp, pemOf } from "./PickUp.ts";

/**
 * Says what the real agent was once heard to say, each thing as soon as the service has said all that was said before it,
 * and compares what the service says with what was said then. How data is cut into messages is of no matter, nor are
 * windows.
 */
export class ReplayedAgent implements SceneAgent {
  readonly #options: SceneOptions;
  readonly #recording: readonly Line[];
  readonly #key = generateKeyPairSync("rsa", { modulusLength: 2048 });
  readonly #pickUps: PickUp[] = [];
  /** What the recording has names for. */
  readonly #known: Record<string, string>;
  #lines: { readonly line: Line; done: boolean }[] = [];
  #tunnel: WebSocket | undefined;
  #broken = Promise.withResolvers<never>();
  #wrong: string | undefined;

  constructor(options: SceneOptions & { readonly file: string }) {
    this.#options = options;
    const [, ...lines] = readFileSync(options.file, "utf8").trim().split("\n");
    this.#recording = lines.map((line) => JSON.parse(line) as Line);
    this.#known = {
      "<tenant>": options.tenant,
      "<mac>": "02:00:00:00:00:01",
      "<public key>": this.#key.publicKey.export({ type: "pkcs1", format: "pem" }).toString(),
    };
  }

  get wrong(): Promise<never> {
    return this.#broken.promise;
  }

  begin(scene: string): void {
    this.#lines = this.#recording
      .filter((line) => line.scene === scene)
      .map((line) => ({ line, done: false }));
    if (this.#lines.length === 0) throw new Error(`nothing was recorded of ${scene}`);
    this.#pickUps.length = 0;
    this.#wrong = undefined;
    this.#broken = Promise.withResolvers();
    // Where nobody waits for it yet.
    this.wrong.catch(() => {});
    this.#perform();
  }

  tell(told: unknown): void {
    this.#hear("test", { told });
  }

  async done(): Promise<void> {
    const all = vi.waitFor(
      () => {
        const left = this.#lines.find(({ done }) => !done);
        if (left) throw new Error(`not said: ${JSON.stringify(left.line)}`);
      },
      { timeout: 20_000, interval: 10 },
    );
    await Promise.race([all, this.wrong]);
  }

  async stop(): Promise<void> {
    for (const pickUp of this.#pickUps) pickUp.end();
    this.#tunnel?.terminate();
  }

  /** Compares what is heard with the next thing that was heard there. */
  #hear(on: string, said: Said): void {
    const heard = named(said, this.#options.password);
    const next = this.#lines.find(({ line, done }) => !done && line.on === on && line.from !== "agent");
    if (next && isDeepStrictEqual(next.line.said, heard)) {
      next.done = true;
      this.#perform();
    } else if (!JSON.stringify(heard).includes('"keep-alive"')) {
      const wanted = next ? JSON.stringify(next.line) : "nothing more";
      this.#fail(`${on}: ${JSON.stringify(heard)} was said, but in the recording ${wanted}`);
    }
  }

  #fail(why: string): void {
    this.#wrong ??= why;
    this.#broken.reject(new Error(this.#wrong));
    // So that no client waits for what does not come.
    for (const pickUp of this.#pickUps) pickUp.end();
  }

  /** Says what the agent says next, up to where it waited for the service. */
  #perform(): void {
    for (const entry of this.#lines) {
      if (entry.done) continue;
      if (entry.line.from !== "agent" || this.#wrong !== undefined) return;
      entry.done = true;
      this.#say(entry.line);
    }
  }

  #say({ on, said }: Line): void {
    if ("request" in said) this.#request(said.request);
    else if ("upgrade" in said && on === "tunnel") this.#connect(said.upgrade.headers);
    else if ("upgrade" in said) this.#pickUp(on, said.upgrade.headers);
    else if ("line" in said) this.#tunnel?.send(Buffer.from(`${JSON.stringify(this.#filled(said.line))}\n`));
    else if ("close" in said && on === "tunnel") this.#tunnel?.terminate();
    else this.#pickUps.find((pickUp) => pickUp.on === on)?.say(said);
  }

  /** With what is so in this run, in place of names. */
  #filled<T>(said: T): T {
    const fill = (text: string) =>
      Object.entries(this.#known).reduce((filled, [name, value]) => filled.replaceAll(name, value), text);
    return JSON.parse(JSON.stringify(said), (_key, value) =>
      typeof value === "string" ? fill(value) : value,
    );
  }

  #request(recorded: Of<"request">["request"]): void {
    const { method, path, headers, body } = this.#filled(recorded);
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
        if (signature) this.#checkProof(body as { readonly data: string }, signature);
        this.#hear("service", { answer: { status: answer.statusCode ?? 0, ...answered } });
      });
    });
    asked.end(sent);
  }

  /** Whether the service has signed with the key that it logs in with, as the agent sees it. */
  #checkProof({ data }: { readonly data: string }, signature: string): void {
    const key = this.#pickUps.findLast(({ shown }) => shown.length > 0)?.shown;
    const proof = Buffer.from(signature, "base64");
    if (!key || !verify("sha256", Buffer.from(data), pemOf(key), proof))
      this.#fail("service: the signature is wrong");
  }

  #socket(on: string, path: string, headers: Readonly<Record<string, string>>): WebSocket {
    const { authorization, "user-agent": agent } = this.#filled(headers);
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
    return socket;
  }

  #connect(headers: Readonly<Record<string, string>>): void {
    const socket = this.#socket("tunnel", "/ssh/connection", headers);
    this.#tunnel = socket;
    socket.on("message", (data, binary) => {
      if (!binary) this.#fail("tunnel: a message is text, which the agent takes for the end");
      for (const line of String(data).trimEnd().split("\n")) {
        const message = JSON.parse(line);
        if (message.connPath)
          this.#known["/ssh/revdial?revdial.dialer=<instance>&uuid=<dial>"] = message.connPath;
        this.#hear("tunnel", { line: message });
      }
    });
  }

  #pickUp(on: string, headers: Readonly<Record<string, string>>): void {
    const path = this.#filled("/ssh/revdial?revdial.dialer=<instance>&uuid=<dial>");
    const said = this.#lines.flatMap(({ line }) =>
      line.on === on && line.from === "agent" ? [line.said] : [],
    );
    const pickUp = new PickUp({
      on,
      socket: this.#socket(on, path, headers),
      said,
      key: this.#key.privateKey.export({ type: "pkcs1", format: "pem" }).toString(),
      heard: (what) => this.#hearStream(on, what),
      failed: (why) => this.#fail(`${on}: ${why}`),
      shown: (key) => {
        this.#known["<fingerprint>"] = fingerprintOf(key);
      },
    });
    this.#pickUps.push(pickUp);
  }

  /** As `#hear`, with data cut where it was cut in the recording. */
  #hearStream(on: string, said: Said): void {
    if (!("ssh" in said) || said.ssh.message !== "CHANNEL_DATA") {
      this.#hear(on, said);
      return;
    }
    let data = String(said.ssh.data);
    while (data !== "") {
      const entry = this.#lines.findIndex(
        ({ line, done }) => !done && line.on === on && line.from === "gateway",
      );
      const next = this.#lines[entry]?.line.said as Partial<Of<"ssh">> | undefined;
      const wanted = next?.ssh?.message === "CHANNEL_DATA" ? String(next.ssh.data) : "";
      const length = Math.min(wanted.length || data.length, data.length);
      const part = { ...said.ssh, data: data.slice(0, length) };
      data = data.slice(length);
      if (length < wanted.length && wanted.startsWith(part.data)) {
        const { line } = this.#lines[entry] as { line: Line };
        const rest = { ...line, said: { ssh: { ...part, data: wanted.slice(length) } } };
        this.#lines[entry] = { line: rest, done: false };
      } else this.#hear(on, { ssh: part });
    }
  }
}
