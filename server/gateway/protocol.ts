import type { SessionEntries } from "../features/sessions/addEntries.ts";
import type { ServiceSettings } from "../settings/readConfig.ts";
import type { SshAddress } from "./ssh/sshAddress.ts";

/** An error for a device that cannot be reached now. The message completes the sentence "the device …". */
export class UnreachableError extends Error {}

/** An error for a device whose tunnel no instance of the service holds. */
export class NotConnectedError extends UnreachableError {
  constructor() {
    super("is not connected");
  }
}

/** The reason why a device cannot be reached, for a logged-in client. Details of other errors are in the log only. */
export const unreachableReason = (error: unknown): string =>
  `The device ${error instanceof UnreachableError ? error.message : "cannot be reached"}`;

/**
 * The output that the gateway records: none; output of terminals; output of terminals and of commands that transfer
 * no files; output of all terminals and commands.
 */
export type RecordingMode = "none" | "terminals" | "default" | "all";

/** Size of a terminal in characters. */
export interface TerminalSize {
  readonly width: number;
  readonly height: number;
}

/** The part of a login's device that the gateway process uses. */
export interface AdmittedDevice {
  readonly uid: string;
  readonly tenantId: string;
  /** Text that the namespace shows before a shell, with the line ends of a terminal; empty if there is no text. */
  readonly announcement: string;
  /** Mode by which the gateway records the session's output. */
  readonly recording: RecordingMode;
  /**
   * Patterns of the targets to which the login may forward connections. A pattern must match a whole `host:port`.
   * Undefined: the server allows no forwarding.
   */
  readonly forwarding: readonly string[] | undefined;
  /** Minutes without input or output after which a session ends; 0: no limit. */
  readonly idleMinutes: number;
}

/** The reason why a login is refused, for the operator's log and metrics. Clients never receive it. */
export type Refusal =
  | "address"
  | "device"
  | "key"
  | "filter"
  | "firewall"
  | "member"
  | "password"
  | "signature"
  | "unreachable";

/** The policy's decision about a login. */
export type Admission = { readonly device: AdmittedDevice } | RefusedLogin;

/** A login that the policy refuses. The reason is for the operator. */
export interface RefusedLogin {
  readonly refused: Refusal;
  readonly reason: string;
}

/** A login for the policy to decide. A client first sends a query without a signature, then the login itself. */
export interface LoginQuestion extends SshAddress {
  /** The client's address, normalized. */
  readonly address: string;
  /** The public key that the client presents, in SSH's wire format; undefined if it has sent a password. */
  readonly key: Buffer | undefined;
  /** Whether firewall rules decide too. They do not while the client only queries whether a key is acceptable. */
  readonly firewall: boolean;
}

/** A login that the policy has admitted. */
export interface AdmittedLogin {
  readonly device: AdmittedDevice;
  /** Login name on the device. */
  readonly username: string;
  /** The client's address. */
  readonly address: string;
  /** The type of the session, as far as it is known. */
  readonly type: "none" | "web";
  /** The public key that opens the login, in SSH's wire format; undefined if a password opens it. */
  readonly key: Buffer | undefined;
  /** The user who opens the login in a browser; undefined for other logins. */
  readonly userId?: string | undefined;
}

/** A session to be created. */
export interface NewSession extends Omit<AdmittedLogin, "device"> {
  readonly uid: string;
  readonly deviceUid: string;
  readonly tenantId: string;
}

/** Values of an event, by their names in the API. */
export type EventData = Readonly<Record<string, string | number>>;

/** The calls of the gateway process to the service, each with its input and output. */
export interface Calls {
  admit: { readonly input: LoginQuestion; readonly output: Admission };
  begin: { readonly input: NewSession; readonly output: undefined };
  /** Connects to the device of a session that has begun. Fails with an {@link UnreachableError}. */
  reach: { readonly input: { readonly session: string }; readonly output: ReachedDevice };
  /** Reports the result of a `prove` message: whether an agent has the private key of its device. */
  proved: { readonly input: ProofOutcome; readonly output: undefined };
  /** Returns the private key for logins to agents, as PEM (PKCS#1). */
  agentKey: { readonly input: undefined; readonly output: string };
  /** Adds entries to sessions. The output lists the sessions whose output is no longer recorded. */
  write: { readonly input: readonly SessionEntries[]; readonly output: readonly string[] };
  /** Closes a session. */
  end: { readonly input: { readonly uid: string }; readonly output: undefined };
}

/** The result of an agent's proof. */
export interface ProofOutcome {
  readonly ticket: RelayTicket;
  /** The reason of a failure, a sentence about the agent without its subject; undefined if the proof succeeded. */
  readonly failure: string | undefined;
}

/** A device whose agent has picked up a connection. */
export interface ReachedDevice {
  /** The ticket of the connection. */
  readonly ticket: RelayTicket;
  /** The device's public key in SSH's wire format. Its agent must have the private key. */
  readonly hostKey: Buffer;
}

/**
 * The first characters of a connection from the gateway process to the service's local socket. A ticket selects the
 * connection to join, and is valid once.
 */
export type RelayTicket = string;
export const RELAY_TICKET_LENGTH = 32;

/** A login for the operator's metrics. */
export interface CountedLogin {
  readonly entry: "ssh" | "web";
  readonly credential: "key" | "password" | "none";
  readonly result: Refusal | "accepted";
  /** Seconds from the policy's decision until the device accepted the login; only for accepted logins. */
  readonly seconds?: number;
}

/** The state of the gateway process, and its refusals. */
export interface GatewayProcessState {
  /** Resident memory, in bytes. */
  readonly memory: number;
  /** Session entries that wait to be written, and the characters of their texts. */
  readonly waiting: { readonly entries: number; readonly characters: number };
  /** Key exchanges that clients have aborted or that were refused since the last message. */
  readonly refusedExchanges: number;
}

/** A terminal that a browser requests. */
export interface RequestedTerminal {
  readonly admission: Admission;
  /** Login name on the device. */
  readonly username: string;
  /** Undefined if the browser has proved that it has a key. */
  readonly password: string | undefined;
  /** The browser's address. */
  readonly address: string;
  /** The key that the browser has proved to have; undefined if it has sent a password. */
  readonly key: Buffer | undefined;
  /** The user who is logged in to the browser's console, if known. */
  readonly userId: string | undefined;
  readonly size: TerminalSize;
}

/** The only settings of the service that the gateway process receives. */
const GATEWAY_SETTINGS = [
  "sshEnvironment",
  "sshKeepAlive",
  "sshMemory",
  "sshRefusalsPerAddress",
  "sshStartupsPerAddress",
  "trustedProxies",
] as const satisfies readonly (keyof ServiceSettings)[];

export type GatewaySettings = Pick<ServiceSettings, (typeof GATEWAY_SETTINGS)[number]>;

export const gatewaySettings = (settings: ServiceSettings): GatewaySettings =>
  Object.fromEntries(GATEWAY_SETTINGS.map((name) => [name, settings[name]])) as unknown as GatewaySettings;

/** The start parameters of the gateway process. */
export interface GatewayProcessStart {
  /** Path of the service's local socket. */
  readonly socket: string;
  readonly logLevel: string;
  readonly settings: GatewaySettings;
  /** The SSH listener; undefined if the process serves web terminals only. */
  readonly entry: { readonly host: string; readonly port: number; readonly hostKey: string } | undefined;
}

/** Messages to the gateway process. */
export type ToGatewayProcess =
  | { readonly kind: "start"; readonly start: GatewayProcessStart }
  | { readonly kind: "answer"; readonly id: number; readonly output: unknown }
  /** A call has failed. The text is the message of an UnreachableError; undefined for any other error. */
  | { readonly kind: "failure"; readonly id: number; readonly unreachable: string | undefined }
  /** Ends a session. */
  | { readonly kind: "end"; readonly uid: string; readonly reason: string }
  /** Has an agent prove that it has its device's private key. */
  | ({ readonly kind: "prove" } & ReachedDevice)
  | { readonly kind: "terminal"; readonly ticket: RelayTicket; readonly requested: RequestedTerminal }
  /** The browser has closed its terminal. */
  | { readonly kind: "leave"; readonly ticket: RelayTicket }
  | { readonly kind: "resize"; readonly ticket: RelayTicket; readonly size: TerminalSize }
  /** Accepts no more connections, and shows a text in every terminal. Open logins continue. */
  | { readonly kind: "drain"; readonly notice: string }
  /** Accepts no more connections, ends all sessions, and then ends the process. */
  | { readonly kind: "stop" };

/** Messages of the gateway process. */
export type FromGatewayProcess =
  /** The process accepts connections. The port is the port of the SSH listener. */
  | { readonly kind: "ready"; readonly port: number | undefined }
  /** The process cannot start. The reason is for the operator. */
  | { readonly kind: "failed"; readonly reason: string }
  /** The event loop of the process is responsive. */
  | { readonly kind: "alive"; readonly state: GatewayProcessState }
  | { readonly kind: "call"; readonly id: number; readonly call: keyof Calls; readonly input: unknown }
  | { readonly kind: "login"; readonly login: CountedLogin };
