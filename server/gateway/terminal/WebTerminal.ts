import { Writable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import type { ClientChannel } from "ssh2";
import type { RawData, WebSocket } from "ws";
import { z } from "zod";
import { Exchange } from "../../http/webSockets.ts";
import type { Gateway } from "../Gateway.ts";
import type { Admission } from "../logins/admit.ts";
import { DeviceLogin } from "../logins/DeviceLogin.ts";
import type { TerminalSize } from "../logins/SessionLedger.ts";
import { tellLogin, tellRefusal } from "../logins/tellLogin.ts";
import { UnreachableError } from "../tunnels/Tunnels.ts";

/** How often a browser is pinged, in milliseconds; one that did not answer the last ping is gone. */
const PING = 30_000;
/** The terminal's only seat. */
const SEAT = 0;
const TERM = "xterm";

/** What a stranger hears of any refusal. */
const DENIED = "Permission denied";

/** A terminal that was asked for. */
export interface AskedTerminal {
  readonly admission: Admission;
  /** Login name on the device. */
  readonly username: string;
  /** Undefined: the browser has proved that it has a key. */
  readonly password: string | undefined;
  /** The browser's address. */
  readonly address: string;
  readonly size: TerminalSize;
}

/** What a browser sends: input, as bytes or base64, or a new size of its terminal. */
const fromBrowser = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal(1), data: z.union([z.array(z.int().min(0).max(255)), z.base64()]) }),
  z.object({
    kind: z.literal(2),
    data: z.object({ cols: z.int().min(1).max(1000), rows: z.int().min(1).max(1000) }),
  }),
]);

/** A terminal in a browser, over a WebSocket. */
export class WebTerminal extends Exchange {
  readonly #gateway: Gateway;
  readonly #asked: AskedTerminal;
  #size: TerminalSize;
  #login: DeviceLogin | undefined;
  #shell: ClientChannel | undefined;

  constructor(gateway: Gateway, asked: AskedTerminal) {
    super();
    this.#gateway = gateway;
    this.#asked = asked;
    this.#size = asked.size;
  }

  /** One that only says why there is none. */
  static refused(reason: string): Exchange {
    return new (class extends Exchange {
      begin(socket: WebSocket): void {
        socket.on("error", () => {});
        leave(socket, reason);
      }
    })();
  }

  begin(socket: WebSocket): void {
    socket.on("error", () => {});
    socket.on("message", (data) => this.#receive(socket, data));
    // What is typed before the shell is there waits in the connection.
    socket.pause();
    keepAlive(socket);
    socket.on("close", () => void this.#login?.finish());
    this.#open(socket).catch((error: unknown) => {
      if (!(error instanceof UnreachableError)) {
        this.#gateway.log().error({ err: error }, "a web terminal could not be opened");
      }
      // That a device is not there is for nobody who has proved nothing.
      const known = error instanceof UnreachableError && this.#asked.password === undefined;
      leave(socket, known ? `The device ${error.message}` : DENIED);
    });
  }

  async #open(socket: WebSocket): Promise<void> {
    const { admission, username, password, address } = this.#asked;
    const credential = password === undefined ? "key" : "password";
    const told = { entry: "web", credential, username, address } as const;
    if ("refused" in admission) {
      tellRefusal(this.#gateway, told, admission);
      leave(socket, DENIED);
      return;
    }
    const { device } = admission;
    const login = new DeviceLogin(this.#gateway, { device, username, address, type: "web" }, (reason) =>
      leave(socket, `\r\n${reason}\r\n`),
    );
    this.#login = login;
    const client = await tellLogin(this.#gateway, { ...told, login }, () =>
      password === undefined ? login.byKey() : login.byPassword(password),
    );
    if (client === undefined) {
      leave(socket, DENIED);
      return;
    }
    const { width, height } = this.#size;
    login.ledger.describe({ type: "web", term: TERM });
    login.ledger.event(SEAT, "pty-req", { term: TERM, columns: width, rows: height, width: 0, height: 0 });
    client.shell({ term: TERM, cols: width, rows: height, width: 0, height: 0 }, (error, shell) => {
      if (error) leave(socket, "The device opens no shell");
      else this.#run(socket, login, shell);
    });
  }

  #run(socket: WebSocket, login: DeviceLogin, shell: ClientChannel): void {
    this.#shell = shell;
    const { namespace } = login.admitted.device;
    const announcement = namespace.connectionAnnouncement.trimEnd();
    if (announcement !== "") socket.send(`${announcement.replaceAll(/\r?\n/g, "\r\n")}\r\n`);
    login.ledger.event(SEAT, "shell", {});
    // Cut between characters, as text frames must be.
    const decoder = new StringDecoder("utf8");
    const toBrowser = new Writable({
      write: (output: Buffer, _encoding, done) => {
        void login.ledger.record(SEAT, output, this.#size).then(() => {
          const text = decoder.write(output);
          if (text === "") done();
          else socket.send(text, done);
        });
      },
    });
    toBrowser.on("error", () => socket.terminate());
    shell.pipe(toBrowser);
    shell.on("close", () => leave(socket));
    socket.resume();
  }

  #receive(socket: WebSocket, data: RawData): void {
    const message = readMessage(String(data));
    if (message === undefined) {
      socket.close(1007, "messages must be {kind, data}");
      return;
    }
    if (message.kind === 1) {
      const input = Buffer.from(message.data as string, "base64");
      this.#type(socket, typeof message.data === "string" ? input : Buffer.from(message.data));
      return;
    }
    const { cols, rows } = message.data;
    this.#size = { width: cols, height: rows };
    this.#shell?.setWindow(rows, cols, 0, 0);
    this.#login?.ledger.event(SEAT, "window-change", { columns: cols, rows, width: 0, height: 0 });
  }

  #type(socket: WebSocket, input: Buffer): void {
    if (this.#shell === undefined || this.#shell.write(input)) return;
    socket.pause();
    this.#shell.once("drain", () => socket.resume());
  }
}

function readMessage(text: string): z.output<typeof fromBrowser> | undefined {
  try {
    return fromBrowser.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** Says why, and closes. */
function leave(socket: WebSocket, reason?: string): void {
  if (socket.readyState !== socket.OPEN) return;
  if (reason !== undefined) socket.send(reason);
  socket.resume();
  socket.close(1000);
}

function keepAlive(socket: WebSocket): void {
  let answered = true;
  const timer = setInterval(() => {
    if (!answered) socket.terminate();
    answered = false;
    socket.ping();
  }, PING).unref();
  socket.on("pong", () => {
    answered = true;
  });
  socket.on("close", () => clearInterval(timer));
}
