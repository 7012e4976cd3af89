import type { DeviceAddress } from "../features/devices/lookup.ts";
import type { EntriesResult, SessionEntries } from "../features/sessions/addEntries.ts";
import type { ServiceSettings } from "../settings/readConfig.ts";

/**
 * An error for a device that cannot be reached now. The error's message completes a sentence that begins with "the
 * device".
 */
export class UnreachableError extends Error {}

/** An error for a device whose tunnel no instance of the service holds. */
export class NotConnectedError extends UnreachableError {
  constructor() {
    super("is not connected");
  }
}

/**
 * An error for a login that fails because of an outage of the service's database. The error's message completes a
 * sentence that begins with "the service".
 */
export class OutageError extends Error {}

/**
 * The reason why a login failed, as the logged-in client receives it. For errors of any other class, only the log
 * contains the details.
 */
export const failureReason = (error: unknown): string =>
  error instanceof OutageError
    ? `The service ${error.message}`
    : `The device ${error instanceof UnreachableError ? error.message : "cannot be reached"}`;

/**
 * The output that the gateway records. `none`: no output. `terminals`: output of terminals. `default`: output of
 * terminals, and of commands that transfer no files. `all`: output of all terminals and commands.
 */
export type RecordingMode = "none" | "terminals" | "default" | "all";

/**
 * The behavior of a session if its output and events cannot be recorded for too long. `continue`: the session
 * continues, and its record has a gap. `end`: the session ends.
 */
export type RecordFailure = "continue" | "end";

/** Size of a terminal in characters. */
export interface TerminalSize {
  readonly width: number;
  readonly height: number;
}

/** The device data that the gateway process needs for a login. */
export interface AdmittedDevice {
  readonly uid: string;
  readonly tenantId: string;
  /**
   * The namespace's announcement, which a terminal shows before a shell starts. Lines end with CR and LF. Empty if the
   * namespace has no announcement.
   */
  readonly announcement: string;
  /** Recording mode, which determines the output that the gateway records. */
  readonly recording: RecordingMode;
  /** Whether the session ends if its output and events cannot be recorded. */
  readonly recordFailure: RecordFailure;
  /**
   * Patterns of the targets to which the login may forward connections. A pattern must match a whole `host:port`.
   * Undefined if the service allows no forwarding.
   */
  readonly forwarding: readonly string[] | undefined;
  /** Maximum time, in minutes, without input or output before a session ends. 0 means no limit. */
  readonly idleMinutes: number;
  readonly ends: LoginEnds;
}

/** The known expiry times of a login. The service ends the login at these times even if the database cannot be read. */
export interface LoginEnds {
  /**
   * The first expiry time of the login's key or of a membership that the login needs, in milliseconds since 1970.
   * Infinity if neither expires. The login has no access after this time.
   */
  readonly access: number;
  /**
   * The next expiry time of a firewall rule of the namespace, in milliseconds since 1970. Infinity if no rule expires.
   * After this time, the login must be checked against the policy again.
   */
  readonly rule: number;
  /** Maximum duration of the session, in minutes. 0 means no limit. */
  readonly maxMinutes: number;
}

/** The reason why a login is refused, for the operator's log and metrics. Clients never receive it. */
export type Refusal =
  | "address"
  | "busy"
  | "device"
  | "key"
  | "type"
  | "expired"
  | "owner"
  | "filter"
  | "firewall"
  | "member"
  | "password"
  | "signature"
  | "unreachable";

/** The policy's decision about a login. */
export type Admission = { readonly device: AdmittedDevice } | RefusedLogin;

/** A login that the policy refuses. Only the operator may see the reason. */
export interface RefusedLogin {
  readonly refused: Refusal;
  readonly reason: string;
}

/** The part of an SSH address that identifies the device: namespace and device name, or the uid. */
export type DeviceName = DeviceAddress | { readonly uid: string };

/** The login name and the device that an SSH user name contains. */
export interface SshAddress {
  /** Login name on the device. */
  readonly login: string;
  readonly device: DeviceName;
}

/**
 * An authentication attempt that the policy must allow or deny. A client first queries, without a signature, whether
 * the service accepts a key. Then the client sends the attempt with the signature.
 */
export interface LoginQuestion extends SshAddress {
  /** The client's address, normalized. */
  readonly address: string;
  /** The public key that the client presents, in SSH's wire format. Undefined if the client sent a password. */
  readonly key: Buffer | undefined;
  /**
   * Whether the decision includes firewall rules. False if the client only queries whether the service accepts a key.
   */
  readonly firewall: boolean;
}

/** A login that the policy has allowed. */
export interface AdmittedLogin {
  readonly device: AdmittedDevice;
  /** Login name on the device. */
  readonly username: string;
  /** The client's address. */
  readonly address: string;
  /**
   * The type of the session. The type of a web terminal is `web`. Other sessions have the type `none` until the
   * client's first request determines the type.
   */
  readonly type: "none" | "web";
  /** The public key that opened the login, in SSH's wire format. Undefined if a password opened the login. */
  readonly key: Buffer | undefined;
  /** The user who opened the login in a browser; undefined if the login was not opened in a browser. */
  readonly userId?: string | undefined;
}

/** A session that the service must create. */
interface NewSession extends Omit<AdmittedLogin, "device"> {
  readonly uid: string;
  readonly deviceUid: string;
  readonly tenantId: string;
  readonly ends: LoginEnds;
}

/** The fields of a session event, by their names in the API. */
export type EventData = Readonly<Record<string, string | number>>;

/** The calls from the gateway process to the service, with the input and output types of each call. */
export interface Calls {
  admit: { readonly input: LoginQuestion; readonly output: Admission };
  begin: { readonly input: NewSession; readonly output: undefined };
  /**
   * Connects to the device of a session that has begun. The call fails with an {@link UnreachableError} if the device
   * cannot be reached.
   */
  reach: { readonly input: { readonly session: string }; readonly output: ReachedDevice };
  /** Reports the result of a `prove` message: whether an agent has the private key of its device. */
  proved: { readonly input: ProofOutcome; readonly output: undefined };
  /** Returns the private key with which the service logs in to agents, as PEM (PKCS#1). */
  agentKey: { readonly input: undefined; readonly output: string };
  /** Stores events and recorded output of sessions. Returns the result of each session, in the same order. */
  write: { readonly input: readonly SessionEntries[]; readonly output: readonly EntriesResult[] };
  /** Closes a session that ended at the given time. */
  end: { readonly input: { readonly uid: string; readonly at: Date }; readonly output: undefined };
}

/** The outcome of an agent's proof that it has the private key of its device. */
interface ProofOutcome {
  readonly ticket: RelayTicket;
  /**
   * The reason why the proof failed. It completes a sentence that begins with "the agent". Undefined if the proof
   * succeeded.
   */
  readonly failure: string | undefined;
}

/** A device whose agent has picked up a connection. */
export interface ReachedDevice {
  /** The ticket with which the gateway process opens the connection to the agent. */
  readonly ticket: RelayTicket;
  /** The device's public key in SSH's wire format. The agent must have the matching private key. */
  readonly hostKey: Buffer;
}

/**
 * A ticket, which identifies the connection of an agent or a browser. The gateway process sends the ticket as the first
 * text on each connection to the service's local socket. The service then joins the two connections. Each ticket is
 * valid once.
 */
export type RelayTicket = string;
export const RELAY_TICKET_LENGTH = 32;

/** A login attempt, as the operator's metrics count it. */
export interface CountedLogin {
  readonly entry: "ssh" | "web";
  readonly credential: "key" | "password" | "none";
  readonly result: Refusal | "accepted";
  /**
   * Time, in seconds, from the policy's decision until the device accepted the login. Undefined for refused logins.
   */
  readonly seconds?: number;
}

/** The gateway process's memory use, its queued session entries, and the number of refused key exchanges. */
export interface GatewayProcessState {
  /** Resident memory, in bytes. */
  readonly memory: number;
  /** Number of session entries that are waiting to be written, and number of characters of these entries. */
  readonly waiting: { readonly entries: number; readonly characters: number };
  /** Number of key exchanges that were refused, or that clients aborted, since the last message. */
  readonly refusedExchanges: number;
  /** Recorded data that was lost since the last message. */
  readonly lost: LostData;
}

/** Lost data of recordings. */
export interface LostData {
  /** Number of gaps in recordings. */
  readonly gaps: number;
  /**
   * Number of bytes of output that were lost since the last message. Includes bytes in open gaps that earlier messages
   * have counted.
   */
  readonly bytes: number;
}

/** A terminal that a browser requests. */
export interface RequestedTerminal {
  readonly admission: Admission;
  /** Login name on the device. */
  readonly username: string;
  /** The password that the browser sent. Undefined if the browser proved that it has a key. */
  readonly password: string | undefined;
  /** The browser's address. */
  readonly address: string;
  /** The key that the browser proved to have. Undefined if the browser sent a password. */
  readonly key: Buffer | undefined;
  /** The user who is logged in to the browser's console. Undefined if no such user is known. */
  readonly userId: string | undefined;
  readonly size: TerminalSize;
}

/** The only settings of the service that the gateway process receives. */
const GATEWAY_SETTINGS = [
  "sshEnvironment",
  "sshKeepAlive",
  "sshMemory",
  "sshRecordPatience",
  "sshRefusalsPerAddress",
  "sshStartupsPerAddress",
  "trustedProxies",
] as const satisfies readonly (keyof ServiceSettings)[];

type GatewaySettings = Pick<ServiceSettings, (typeof GATEWAY_SETTINGS)[number]>;

export const gatewaySettings = (settings: ServiceSettings): GatewaySettings =>
  Object.fromEntries(GATEWAY_SETTINGS.map((name) => [name, settings[name]])) as unknown as GatewaySettings;

/** The parameters with which the service starts the gateway process. */
export interface GatewayProcessStart {
  /** Path of the service's local socket. */
  readonly socket: string;
  readonly logLevel: string;
  readonly settings: GatewaySettings;
  /** Parameters of the SSH listener. Undefined if the process serves only web terminals. */
  readonly entry: { readonly host: string; readonly port: number; readonly hostKey: string } | undefined;
}

/** The message of the {@link UnreachableError} or {@link OutageError} with which a call failed. */
export interface FailureCause {
  readonly kind: "unreachable" | "outage";
  readonly message: string;
}

/** Messages to the gateway process. */
export type ToGatewayProcess =
  | { readonly kind: "start"; readonly start: GatewayProcessStart }
  | { readonly kind: "answer"; readonly id: number; readonly output: unknown }
  /** A call failed. `cause` is undefined if clients may not receive the cause. */
  | { readonly kind: "failure"; readonly id: number; readonly cause: FailureCause | undefined }
  /** Ends a session. */
  | { readonly kind: "end"; readonly uid: string; readonly reason: string }
  /** Requires an agent to prove that it has its device's private key. */
  | ({ readonly kind: "prove" } & ReachedDevice)
  | { readonly kind: "terminal"; readonly ticket: RelayTicket; readonly requested: RequestedTerminal }
  /** The user has closed the browser's terminal. */
  | { readonly kind: "leave"; readonly ticket: RelayTicket }
  | { readonly kind: "resize"; readonly ticket: RelayTicket; readonly size: TerminalSize }
  /** Stops accepting connections, and shows a notice in every terminal. Open logins continue. */
  | { readonly kind: "drain"; readonly notice: string }
  /** Stops accepting connections, ends all sessions, and then ends the process. */
  | { readonly kind: "stop" };

/** Messages of the gateway process. */
export type FromGatewayProcess =
  /** The process accepts connections. `port` is the port of the SSH listener. */
  | { readonly kind: "ready"; readonly port: number | undefined }
  /** The process cannot start. `reason` is for the operator. */
  | { readonly kind: "failed"; readonly reason: string }
  /** The event loop of the process is responsive. */
  | { readonly kind: "alive"; readonly state: GatewayProcessState }
  | { readonly kind: "call"; readonly id: number; readonly call: keyof Calls; readonly input: unknown }
  | { readonly kind: "login"; readonly login: CountedLogin };
