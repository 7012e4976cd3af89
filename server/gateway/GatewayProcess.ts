import { type ChildProcess, fork } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { rmdirSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { dirname, extname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { MINUTE } from "@gatehouse-access/sdk/times";
import type { FastifyBaseLogger } from "fastify";
import type { Outage } from "../db/outage.ts";
import { outageOfWork } from "../errors.ts";
import { placeSocket } from "../files/socketPlace.ts";
import { OperatorError } from "../OperatorError.ts";
import { boundedStart } from "../process/boundMemory.ts";
import {
  type Calls,
  type CountedLogin,
  type FailureCause,
  type FromGatewayProcess,
  type GatewayProcessStart,
  type GatewayProcessState,
  type LostData,
  RELAY_TICKET_LENGTH,
  type RelayTicket,
  type ToGatewayProcess,
  UnreachableError,
} from "./protocol.ts";

const MAIN = fileURLToPath(new URL(`./ssh/main${extname(import.meta.filename)}`, import.meta.url));
/**
 * Memory that the process may use in addition to its heap, in megabytes. Node stores the bytes of connections in
 * buffers outside the heap.
 */
const OUTSIDE_HEAP = 256;
/**
 * Limits for an unresponsive process. `ALIVE_INTERVAL` is the interval, in milliseconds, at which the process reports
 * that its event loop is responsive. `MISSED_MAX` is the maximum number of missed reports before the service restarts
 * the process.
 */
const ALIVE_INTERVAL = 1_000;
const MISSED_MAX = 5;
/** Maximum number of missed reports while the process is still treated as ready. */
const MISSED_READY = 2;
/** Maximum time, in milliseconds, for the process to start. Modules load slowly on a busy machine. */
const BEGINNING = MINUTE;
/** Maximum time, in milliseconds, for the process to end its sessions and exit. */
const ENDING = 10_000;
/**
 * Minimum and maximum delay, in milliseconds, before a restart of the process. Each delay is twice as long as the
 * previous delay, up to the maximum.
 */
const PAUSE = { first: 100, longest: 30_000 };
/**
 * Running time, in milliseconds, after which a process is treated as stable. When a stable process ends, the delay
 * before the restart is the minimum delay again.
 */
const SETTLED = MINUTE;
/** Maximum time, in milliseconds, from the creation of a ticket until the process opens the ticket's connection. */
const TICKET_LIFE = 10_000;

/** The handlers of the calls that the gateway process makes. */
export type CallHandlers = {
  readonly [Call in keyof Calls]: (input: Calls[Call]["input"]) => Promise<Calls[Call]["output"]>;
};

/** Options of the gateway process, and the handlers of its messages. */
interface GatewayProcessOptions {
  /** Folder that contains the local socket. */
  readonly folder: string;
  readonly start: Omit<GatewayProcessStart, "socket" | "entry" | "logLevel">;
  readonly log: () => FastifyBaseLogger;
  readonly handlers: CallHandlers;
  count(login: CountedLogin): void;
  /** Called with the number of key exchanges that were refused or aborted. */
  refused(exchanges: number): void;
  /** Called with the amount of recorded data that the process has lost. */
  lost(data: LostData): void;
  /** Called after the process and all its sessions have ended. */
  ended(): void;
}

/**
 * The condition of the process: whether it can accept logins. `not started` also applies while the process starts for
 * the first time. `restarting` applies from the end of a process until the next process accepts connections.
 * `unresponsive` applies while the reports of the process are late.
 */
export type GatewayCondition = "not started" | "ready" | "restarting" | "unresponsive";

/** The reports of a running process. */
interface Reports {
  isReady: boolean;
  /** Number of missed reports since the last report. */
  missed: number;
}

/** A connection that the process must open, and the timer that stops the service from waiting for it. */
interface ExpectedConnection {
  readonly timer: NodeJS.Timeout;
  join(socket: Socket): void;
}

/**
 * The process that speaks SSH with clients and agents. The process has no access to the database or to secrets of the
 * service. For each login, the service allows or denies access. If the process ends or hangs, the service restarts it.
 * The service passes the bytes of connections to the process through a local socket. It cannot pass connection handles,
 * because TLS connections and WebSockets have no such handle.
 */
export class GatewayProcess {
  readonly #options: GatewayProcessOptions;
  readonly #expected = new Map<RelayTicket, ExpectedConnection>();
  readonly #relayed = new Set<Socket>();
  #relay: { readonly server: Server; readonly path: string } | undefined;
  #entry: GatewayProcessStart["entry"];
  #child: ChildProcess | undefined;
  #ready: Promise<number | undefined> | undefined;
  #reports: Reports | undefined;
  #pause = PAUSE.first;
  readonly #stopped = new AbortController();
  /** Number of restarts of the process. */
  restarts = 0;
  /** The latest metrics that the process reported. Undefined while no process runs. */
  state: GatewayProcessState | undefined;

  constructor(options: GatewayProcessOptions) {
    this.#options = options;
  }

  /** Process id; undefined while no process runs. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Whether the process can accept logins now. */
  get condition(): GatewayCondition {
    if (this.#reports?.isReady) return this.#reports.missed > MISSED_READY ? "unresponsive" : "ready";
    return this.restarts > 0 ? "restarting" : "not started";
  }

  /**
   * Starts the process with an SSH listener.
   * @returns the port of the listener
   * @throws OperatorError the process cannot listen on the address
   */
  async listen(entry: NonNullable<GatewayProcessStart["entry"]>): Promise<number> {
    this.#entry = entry;
    const port = (await this.begin()) ?? entry.port;
    // If the operating system chose the port, the process uses the same port after a restart.
    this.#entry = { ...entry, port };
    return port;
  }

  /** Starts the process. Does nothing if the process runs or is about to restart. */
  begin(): Promise<number | undefined> {
    if (this.#stopped.signal.aborted) return Promise.reject(new Error("the service is being stopped"));
    this.#ready ??= this.#start();
    return this.#ready;
  }

  /**
   * Sends a message. If no process runs, the message is dropped, because all sessions and terminals have ended with the
   * process.
   */
  send(message: ToGatewayProcess): void {
    if (this.#child?.connected) this.#child.send(message, () => {});
  }

  /**
   * Registers a connection that the process must open.
   * @param joined receives the connection
   * @param missed called if the process does not open the connection in time
   */
  expect(joined: (socket: Socket) => void, missed: () => void): RelayTicket {
    const ticket = randomBytes(RELAY_TICKET_LENGTH / 2).toString("hex");
    const timer = setTimeout(() => {
      this.#expected.delete(ticket);
      missed();
    }, TICKET_LIFE);
    this.#expected.set(ticket, { timer, join: joined });
    return ticket;
  }

  /** Ends the process after its sessions have ended. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    const child = this.#child;
    if (child !== undefined) {
      const ended = once(child, "exit");
      const timer = setTimeout(() => child.kill("SIGKILL"), ENDING);
      this.send({ kind: "stop" });
      await ended;
      clearTimeout(timer);
    }
    for (const socket of this.#relayed) socket.destroy();
    const relay = this.#relay;
    if (relay === undefined) return;
    await new Promise((resolve) => relay.server.close(resolve));
    if (dirname(relay.path) !== this.#options.folder) rmdirSync(dirname(relay.path));
  }

  async #start(): Promise<number | undefined> {
    this.#relay ??= await this.#openRelay();
    const startedAt = performance.now();
    let child: ChildProcess;
    try {
      child = this.#fork();
    } catch (error) {
      this.#ended({ code: null, signal: null, pid: undefined, wasReady: false, ran: 0 });
      throw error;
    }
    this.#child = child;
    const begun = Promise.withResolvers<number | undefined>();
    const reports: Reports = { isReady: false, missed: 0 };
    this.#reports = reports;
    const timer = setInterval(() => {
      reports.missed += 1;
      if (reports.missed <= (reports.isReady ? MISSED_MAX : BEGINNING / ALIVE_INTERVAL)) return;
      clearInterval(timer);
      this.#kill(child, "does not respond");
    }, ALIVE_INTERVAL);
    const receive = (message: FromGatewayProcess) => {
      reports.missed = 0;
      if (message.kind === "ready") {
        reports.isReady = true;
        begun.resolve(message.port);
      } else if (message.kind === "failed") begun.reject(new OperatorError(message.reason));
      else this.#receive(child, message);
    };
    child.on("message", (message: FromGatewayProcess) => {
      try {
        receive(message);
      } catch (error) {
        this.#options.log().error({ err: error }, "the gateway process sent a malformed message");
        this.#kill(child, "sends malformed messages");
      }
    });
    const ended = (code: number | null, signal: NodeJS.Signals | null) => {
      clearInterval(timer);
      begun.reject(new Error("the gateway process has ended"));
      const ran = performance.now() - startedAt;
      this.#ended({ code, signal, pid: child.pid, wasReady: reports.isReady, ran });
    };
    child.on("error", (error) => {
      begun.reject(error);
      // A process that failed to start emits no `exit`.
      if (child.pid === undefined) ended(null, null);
    });
    child.once("exit", ended);
    const { start, log } = this.#options;
    const { path: socket } = this.#relay;
    this.send({ kind: "start", start: { ...start, socket, logLevel: log().level, entry: this.#entry } });
    return begun.promise;
  }

  #fork(): ChildProcess {
    const { flags, environment } = boundedStart([], {});
    return fork(MAIN, {
      execArgv: [...flags, `--max-old-space-size=${this.#options.start.settings.sshMemory}`],
      // Do not pass the service's own environment to the process, because that environment contains secrets.
      env: { ...environment, ...kept("PATH", "NODE_COMPILE_CACHE") },
      serialization: "advanced",
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
  }

  #kill(child: ChildProcess, why: string): void {
    this.#options.log().error({ gateway: child.pid }, `killing the gateway process: it ${why}`);
    child.kill("SIGKILL");
  }

  #ended(end: {
    readonly code: number | null;
    readonly signal: NodeJS.Signals | null;
    readonly pid: number | undefined;
    readonly wasReady: boolean;
    readonly ran: number;
  }): void {
    this.#child = undefined;
    this.#ready = undefined;
    this.#reports = undefined;
    this.state = undefined;
    this.#options.ended();
    // The error of the first start is not logged here, because the caller that started the process receives it.
    if (this.#stopped.signal.aborted || (!end.wasReady && this.restarts === 0)) return;
    if (end.ran >= SETTLED) this.#pause = PAUSE.first;
    const pause = this.#pause;
    this.#pause = Math.min(2 * pause, PAUSE.longest);
    this.restarts += 1;
    const { code, signal, pid } = end;
    this.#options
      .log()
      .error({ gateway: pid, code, signal, pause }, "the gateway process has ended; restarting it");
    this.#ready = this.#startAgain(pause);
    // Log the restart error here, although callers that wait for the process also receive it.
    this.#ready.catch((error: unknown) => {
      if (this.#stopped.signal.aborted) return;
      this.#options.log().error({ err: error }, "cannot restart the gateway process");
    });
  }

  async #startAgain(pause: number): Promise<number | undefined> {
    await sleep(pause, undefined, { signal: this.#stopped.signal });
    const port = await this.#start();
    this.#options.log().info({ gateway: this.pid }, "the gateway process was restarted");
    return port;
  }

  #receive(child: ChildProcess, message: FromGatewayProcess): void {
    if (message.kind === "alive") {
      this.state = message.state;
      this.#options.refused(message.state.refusedExchanges);
      this.#options.lost(message.state.lost);
      const most = (this.#options.start.settings.sshMemory + OUTSIDE_HEAP) * 1024 * 1024;
      if (message.state.memory > most) this.#kill(child, "uses too much memory");
    } else if (message.kind === "login") this.#options.count(message.login);
    else if (message.kind === "call") void this.#answer(child, message);
  }

  async #answer(child: ChildProcess, message: Extract<FromGatewayProcess, { kind: "call" }>): Promise<void> {
    const { id, call, input } = message;
    let answer: ToGatewayProcess;
    try {
      const handle = this.#options.handlers[call] as (input: unknown) => Promise<unknown>;
      answer = { kind: "answer", id, output: await handle(input) };
    } catch (error) {
      const cause = causeOf(error);
      if (cause?.kind !== "unreachable")
        this.#options.log().error({ err: error, call }, "a call of the gateway process failed");
      answer = { kind: "failure", id, cause };
    }
    if (child.connected) child.send(answer, () => {});
  }

  async #openRelay(): Promise<{ readonly server: Server; readonly path: string }> {
    const server = createServer((socket) => this.#pair(socket));
    const path = placeSocket(this.#options.folder, "gateway.sock", "socket of the gateway process");
    // Removes the socket of a killed process.
    rmSync(path, { force: true });
    server.listen(path);
    await once(server, "listening");
    return { server, path };
  }

  /**
   * Reads the ticket from a new connection, and passes the connection to the handler that is registered for the ticket.
   */
  #pair(socket: Socket): void {
    this.#relayed.add(socket);
    const timer = setTimeout(() => socket.destroy(), TICKET_LIFE);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      clearTimeout(timer);
      this.#relayed.delete(socket);
    });
    const read = () => {
      const bytes = socket.read(RELAY_TICKET_LENGTH) as Buffer | null;
      if (bytes === null) return;
      socket.off("readable", read);
      clearTimeout(timer);
      const ticket = bytes.toString("latin1");
      const expected = this.#expected.get(ticket);
      this.#expected.delete(ticket);
      clearTimeout(expected?.timer);
      if (expected === undefined) socket.destroy();
      else expected.join(socket);
    };
    socket.on("readable", read);
  }
}

/** Descriptions of the outages. Each description completes a sentence that begins with "the service". */
const OUTAGES: Readonly<Record<Outage, string>> = {
  busy: "is busy at the moment. Try again",
  unwritable: "cannot write its database at the moment. Try again later",
  unreachable: "cannot reach its database at the moment. Try again later",
};

/**
 * Returns the cause of a failed call in a form that clients may receive. Returns undefined if clients may not receive
 * the cause.
 */
function causeOf(error: unknown): FailureCause | undefined {
  if (error instanceof UnreachableError) return { kind: "unreachable", message: error.message };
  const outage = outageOfWork(error);
  return outage && { kind: "outage", message: OUTAGES[outage] };
}

const kept = (...names: readonly string[]): NodeJS.ProcessEnv =>
  Object.fromEntries(
    names.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  );
