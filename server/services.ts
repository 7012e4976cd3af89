import type { KeyObject } from "node:crypto";
import type { Edition } from "@gatehouse-access/sdk/contract";
import type { PrismaClient } from "./db/generated/sqlite/client.ts";
import type { Enrolments } from "./features/devices/Enrolments.ts";
import type { Heartbeats } from "./features/devices/heartbeats.ts";
import type { Mailer } from "./mail/mail.ts";
import type { PaymentGateway } from "./payments/paymentGateway.ts";
import type { Metrics } from "./process/metrics.ts";
import type { Position } from "./process/positions.ts";
import type { Sealer } from "./secrets/sealer.ts";

/** Everything that the features work with; made once, by `process/serve.ts` or by a test. */
export interface Services {
  readonly db: PrismaClient;
  readonly keys: SigningKeys;
  readonly sealer: Sealer;
  readonly settings: ServiceSettings;
  readonly metrics: Metrics;
  readonly mailer: Mailer;
  /** The current time; replaceable, so that tests can let hours pass. */
  readonly now: () => Date;
  /** Device reports that wait to be written. */
  readonly heartbeats: Heartbeats;
  readonly enrolments: Enrolments;
  readonly agentKey: AgentKey;
  /** The payment gateway; features call it only through `callPaymentGateway`. */
  readonly billing: PaymentGateway;
  /** The position of an IP address; 0,0 if it is unknown. */
  readonly positionOf: (address: string) => Position;
}

/** The key pair that logs in to agents, which can pin it. */
export interface AgentKey {
  /** The private key, PEM (PKCS#1). */
  pem(): Promise<string>;
  /** The public key as SSH has it, in base64; undefined while there is none. */
  publicKey(): Promise<string | undefined>;
}

/** RSA keys that sign tokens (RS256); the present one also signs the setup link. */
export interface SigningKeys {
  /** Id of the present key. */
  readonly kid: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  /** The public half of a trusted signing key, current or older; undefined for an unknown id. */
  find(kid: string): Promise<KeyObject | undefined>;
}

/** Maximum requests per minute; 0: no limit. */
export interface RequestLimits {
  /** Login-type requests from one address, or from one /64 of IPv6. */
  readonly loginsPerAddress: number;
  /** Login-type requests for one user name, e-mail address or MFA token, from all addresses together. */
  readonly loginsPerAccount: number;
  /** Device reports from one address, counted in each process. */
  readonly reportsPerAddress: number;
  /** New devices from one address, counted in each process. */
  readonly enrolmentsPerAddress: number;
}

/** The identity provider (SAML 2.0) whose users may log in. */
export interface SamlSettings {
  readonly idpEntityId: string;
  /** Address to which browsers bring requests (binding HTTP-Redirect). */
  readonly ssoUrl: string;
  /** Its certificates in PEM form; their keys verify its signatures. */
  readonly certificates: readonly string[];
  /** Names of the attributes with a user's e-mail address and name. */
  readonly emailAttribute: string;
  readonly nameAttribute: string;
  /** Whether the identity provider may log in as an existing user whose e-mail address it names. */
  readonly linkUsers: boolean;
  /** The service's public origin, without a slash at its end. */
  readonly serviceUrl: string;
}

/** Billing of a cloud instance. */
export interface BillingSettings {
  readonly gateway: "ledger";
  /** How long the gateway may take to answer, in milliseconds. */
  readonly timeout: number;
  /** Price of an accepted device per month, in hundredths of the currency. */
  readonly devicePrice: number;
  readonly currency: "usd" | "brl";
}

/** What SSH logins may do. */
export interface SshSettings {
  /** Port of the SSH entry; undefined without one, 0 for any. */
  readonly port: number | undefined;
  /** Names of environment variables that clients may set; one that ends with `*` stands for all that begin so. */
  readonly environment: readonly string[];
  /** Connections that logins may forward through devices: none; those that namespaces allow; all. */
  readonly forwarding: "off" | "namespace" | "on";
  /** Seconds after which a silent client is asked for an answer. */
  readonly keepAlive: number;
  /** Connections of one network that are not logged in, at a time; 0: any number. */
  readonly startupsPerAddress: number;
  /** Refused logins of one network in a minute; 0: any number. */
  readonly refusalsPerAddress: number;
  /** Megabytes of the gateway process's heap. */
  readonly memory: number;
}

/** Settings that the features work with. */
export interface ServiceSettings {
  readonly edition: Edition;
  /** Longest lockout in minutes; 0 or less turns lockouts off (rules section 9). */
  readonly maximumLockoutMinutes: number;
  /** Pending devices that a namespace may have; 0 or less: any number. */
  readonly maximumPendingDevices: number;
  /** Firewall rules and connectors that a namespace may have; 0 or less: any number. */
  readonly maximumFirewallRules: number;
  readonly maximumConnectors: number;
  /** Maximum size of one session's recording, in MiB. */
  readonly maximumRecording: number;
  /** Tunnels that a device may have at a time; 0 or less: any number. */
  readonly maximumTunnels: number;
  /** Domain below which tunnels have their addresses; undefined: the host at which clients reach the service. */
  readonly tunnelsDomain: string | undefined;
  /** Container image of the agent that the install script runs. */
  readonly agentImage: string;
  /** `host:port` of SSH and of the API, as agents receive it; undefined: taken from the request. */
  readonly sshEndpoint: string | undefined;
  readonly apiEndpoint: string | undefined;
  readonly ssh: SshSettings;
  /** Whether open sessions end once the policy would refuse their logins. */
  readonly endRefusedSessions: boolean;
  /** Origin at which clients reach the service, `https://gate.example.org`; undefined: taken from the request. */
  readonly publicUrl: string | undefined;
  /** Undefined: SAML is off. */
  readonly saml: SamlSettings | undefined;
  /** Origins whose pages may call the service from a browser. */
  readonly corsOrigins: readonly string[];
  /** Whether the pages that the service's own links lead to are served. */
  readonly pages: boolean;
  readonly limits: RequestLimits;
  /** How long the waiting lists of one namespace may take in all, in milliseconds; 0: any time. */
  readonly listBacklog: number;
  /** Addresses and ranges (`10.0.0.0/8`) of proxies whose headers are trusted. */
  readonly trustedProxies: readonly string[];
  readonly billing: BillingSettings;
}
