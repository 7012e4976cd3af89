import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { type Logger, pino } from "pino";
import { loggerOptions } from "../../process/logging.ts";
import {
  type Calls,
  type CountedLogin,
  type FailureCause,
  type FromGatewayProcess,
  type GatewayProcessStart,
  OutageError,
  type RelayTicket,
  type ToGatewayProcess,
  UnreachableError,
} from "../protocol.ts";
import { ForwardingDecisions } from "./ForwardingDecisions.ts";
import { SessionWriter } from "./SessionWriter.ts";

/** An open login of this process. */
export interface OpenLogin {
  readonly uid: string;
  /** Ends the login, and shows the reason to the client. */
  end(reason: string): void;
  /** Shows a message in the login's terminals. */
  notify(text: string): void;
  /** Resolves when the login's session is closed. */
  finish(): Promise<void>;
}

interface PendingCall {
  resolve(output: never): void;
  reject(error: Error): void;
}

/**
 * The gateway process's connection to the service. Provides calls, sockets, settings and the log, and keeps track of
 * the logins.
 */
export class ServiceClient {
  readonly start: GatewayProcessStart;
  readonly log: Logger;
  readonly sessionWriter: SessionWriter;
  readonly forwarding = new ForwardingDecisions();
  /** The logins of this process, by the uids of their sessions. */
  readonly logins = new Map<string, OpenLogin>();
  readonly #waiting = new Map<number, PendingCall>();
  #calls = 0;

  constructor(start: GatewayProcessStart) {
    this.start = start;
    this.log = pino(loggerOptions(start.logLevel as Parameters<typeof loggerOptions>[0]));
    this.sessionWriter = new SessionWriter((sessions) => this.call("write", sessions), this.log, {
      capacity: (start.settings.sshMemory * 1024 * 1024) / 8,
      patience: start.settings.sshRecordPatience * 1000,
    });
  }

  /**
   * Calls the service.
   * @throws UnreachableError the call needs a device that cannot be reached
   * @throws OutageError the call needs the database, which has an outage
   * @throws Error the call failed; the service has logged the cause
   */
  call<Call extends keyof Calls>(call: Call, input: Calls[Call]["input"]): Promise<Calls[Call]["output"]> {
    this.#calls += 1;
    const id = this.#calls;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.send({ kind: "call", id, call, input });
    });
  }

  /** Passes the service's answer to the caller that is waiting for it. */
  settle(message: Extract<ToGatewayProcess, { kind: "answer" | "failure" }>): void {
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (message.kind === "answer") waiting?.resolve(message.output as never);
    else waiting?.reject(errorOf(message.cause));
  }

  /** Opens a connection that the service expects. */
  async connect(ticket: RelayTicket): Promise<Socket> {
    const socket = connect(this.start.socket);
    await once(socket, "connect");
    socket.on("error", () => socket.destroy());
    socket.write(ticket);
    return socket;
  }

  count(login: CountedLogin): void {
    this.send({ kind: "login", login });
  }

  send(message: FromGatewayProcess): void {
    process.send?.(message);
  }

  /** Ends all logins. Resolves when their sessions are closed. */
  async endLogins(reason: string): Promise<void> {
    const all = [...this.logins.values()];
    for (const login of all) login.end(reason);
    await Promise.all(all.map((login) => login.finish()));
  }
}

function errorOf(cause: FailureCause | undefined): Error {
  if (cause === undefined) return new Error("the call has failed; see the service's log");
  return cause.kind === "outage" ? new OutageError(cause.message) : new UnreachableError(cause.message);
}
