import type { SessionEntries } from "../features/sessions/addEntries.ts";
import type { ServiceSettings } from "../settings/readConfig.ts";
import type { SshAddress } from "./ssh/sshAddress.ts";

/** A device cannot be reached now. The message ends the sentence "the device …". */
export class UnreachableError extends Error {}

/** No instance of the service holds a tunnel of the device. */
export class NotConnectedError extends UnreachableError {
  constructor() {
    super("is not connected");
  }
}

/** Why a device cannot be reached, for a client that is logged in: the operator reads other errors in the log. */
export const unreachableReason = (error: unknown): string =>
  `The device ${error instanceof UnreachableError ? error.message : "cannot be reached"}`;

/**
 * The output that the gateway records: none; that of terminals; that of terminals and of commands which are no transfers
 * of files; that of all terminals and commands.
 */
export type RecordingMode = "none" | "terminals" | "default" | "all";

/** Size of a terminal in characters. */
export interface TerminalSize {
  readonly width: number;
  readonly height: number;
}

/** The device of a login, as far as the gateway process needs to know it. */
export interface AdmittedDevice {
  readonly uid: string;
  readonly tenantId: string;
  /** Text that the namespace shows before a shell, with the line ends of a terminal; empty: none. */
  readonly announcement: string;
  /** The output of the session that the gateway records. */
  readonly recording: RecordingMode;
  /**
   * Patterns of the targets to which the login may forward connections, each of which must match a whole `host:port`;
   * undefined: the server allows no forwarding.
   */
  readonly forwarding: readonly string[] | undefined;
  /** Minutes without input or output after which a session ends; 0: any number. */
  readonly idleMinutes: number;
}

/** Why a login is refused: for the operator's log and metrics, never for the client. */
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

/** The questions that a login may ask of the policy, in the order in which a client asks them. */
export interface LoginQuestion extends SshAddress {
  /** The client's address, normalized. */
  readonly address: string;
  /** The public key that the client holds, as SSH has it; undefined: it has sent a password. */
  readonly key: Buffer | undefined;
  /** Whether firewall rules decide too: not yet while the client only asks whether a key would do. */
  readonly firewall: boolean;
}

/** A login that the policy has admitted. */
export interface AdmittedLogin {
  readonly device: AdmittedDevice;
  /** Login name on the device. */
  readonly username: string;
  /** The client's address. */
  readonly address: string;
  /** The kind of the session, as far as it is known. */
  readonly type: "none" | "web";
  /** The public key that opens it, as SSH has it; undefined: a password does. */
  readonly key: Buffer | undefined;
  /** The user whose login opens it in a browser. */
  readonly userId?: string | undefined;
}

/** A session that begins. */
export interface NewSession extends Omit<AdmittedLogin, "device"> {
  readonly uid: string;
  readonly deviceUid: string;
  readonly tenantId: string;
}

/** Values of an event, by their names on the wire. */
export type EventData = Readonly<Record<string, string | number>>;

/** The calls of the gateway process, each with what it sends and what the service answers. */
export interface Calls {
  admit: { readonly input: LoginQuestion; readonly output: Admission };
  begin: { readonly input: NewSession; readonly output: undefined };
  /** Connects with the device of a session that has begun, or fails with an {@link UnreachableError}. */
  reach: { readonly input: { readonly session: string }; readonly output: ReachedDevice };
  /** Whether an agent has the private key of its device: the outcome of a message `prove`. */
  proved: { readonly input: ProofOutcome; readonly output: undefined };
  /** The private key that logs in to agents, PEM (PKCS#1). */
  agentKey: { readonly input: undefined; readonly output: string };
  /** Adds entries to sessions. The output names the sessions whose output is recorded no longer. */
  write: { readonly input: readonly SessionEntries[]; readonly output: readonly string[] };
  /** Closes a session. */
  end: { readonly input: { readonly uid: string }; readonly output: undefined };
}

/** The outcome of a proof of an agent. */
export interface ProofOutcome {
  readonly ticket: RelayTicket;
  /** Why there is no proof, a sentence about the agent without its subject; undefined: there is one. */
  readonly failure: string | undefined;
}

/** A device that has picked up a connection. */
export interface ReachedDevice {
  /** For the connection. */
  readonly ticket: RelayTicket;
  /** The device's public key as SSH has it, which its agent must have. */
  readonly hostKey: Buffer;
}

/**
 * The first characters of a connection of the gateway process to the service's local socket. A ticket selects the
 * connection to join it with, and is valid once.
 */
export type RelayTicket = string;
export const RELAY_TICKET_LENGTH = 32;

/** A login for the operator's metrics. */
export interface CountedLogin {
  readonly entry: "ssh" | "web";
  readonly credential: "key" | "password" | "none";
  readonly result: Refusal | "accepted";
  /** Of an accepted login: seconds from the policy's decision until the device let it in. */
  readonly seconds?: number;
}

/** What the gateway process holds and has refused. */
export interface GatewayProcessState {
  /** Resident memory, in bytes. */
  readonly memory: number;
  /** Entries of sessions that wait to be written, and the characters of their texts. */
  readonly waiting: { readonly entries: number; readonly characters: number };
  /** Key exchanges that clients have broken off, or that were refused, since the last message. */
  readonly refusedExchanges: number;
}

/** A terminal that a browser requests. */
export interface RequestedTerminal {
  readonly admission: Admission;
  /** Login name on the device. */
  readonly username: string;
  /** Undefined: the browser has proved that it has a key. */
  readonly password: string | undefined;
  /** The browser's address. */
  readonly address: string;
  /** The key that the browser has proved to have; undefined: it has sent a password. */
  readonly key: Buffer | undefined;
  /** The user who is logged in there, if that is known. */
  readonly userId: string | undefined;
  readonly size: TerminalSize;
}

/** The settings of the service that the gateway process works with: it gets no others. */
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

/** What the gateway process needs to begin. */
export interface GatewayProcessStart {
  /** Path of the service's local socket. */
  readonly socket: string;
  readonly logLevel: string;
  readonly settings: GatewaySettings;
  /** Undefined: it serves web terminals alone. */
  readonly entry: { readonly host: string; readonly port: number; readonly hostKey: string } | undefined;
}

/** Messages to the gateway process. */
export type ToGatewayProcess =
  | { readonly kind: "start"; readonly start: GatewayProcessStart }
  | { readonly kind: "answer"; readonly id: number; readonly output: unknown }
  /** The call has failed; the text is that of an UnreachableError, and undefined for any other error. */
  | { readonly kind: "failure"; readonly id: number; readonly unreachable: string | undefined }
  /** Ends a session. */
  | { readonly kind: "end"; readonly uid: string; readonly reason: string }
  /** Has an agent prove that it has a private key. */
  | ({ readonly kind: "prove" } & ReachedDevice)
  | { readonly kind: "terminal"; readonly ticket: RelayTicket; readonly requested: RequestedTerminal }
  /** The browser has left its terminal. */
  | { readonly kind: "leave"; readonly ticket: RelayTicket }
  | { readonly kind: "resize"; readonly ticket: RelayTicket; readonly size: TerminalSize }
  /** Accepts no more connections, and shows a text in every terminal. Logins go on. */
  | { readonly kind: "drain"; readonly notice: string }
  /** Accepts no more connections, ends all sessions, and then the process. */
  | { readonly kind: "stop" };

/** Messages of the gateway process. */
export type FromGatewayProcess =
  /** The port is that of the SSH entry. */
  | { readonly kind: "ready"; readonly port: number | undefined }
  /** It cannot begin; the reason is for the operator. */
  | { readonly kind: "failed"; readonly reason: string }
  /** Its event loop turns. */
  | { readonly kind: "alive"; readonly state: GatewayProcessState }
  | { readonly kind: "call"; readonly id: number; readonly call: keyof Calls; readonly input: unknown }
  | { readonly kind: "login"; readonly login: CountedLogin };
