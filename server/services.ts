import type { KeyObject } from "node:crypto";
import type { Edition } from "@gatehouse-access/sdk/contract";
import type { PrismaClient } from "./db/generated/sqlite/client.ts";
import type { Enrolments } from "./features/devices/Enrolments.ts";
import type { Heartbeats } from "./features/devices/heartbeats.ts";
import type { Mailer } from "./mail/mail.ts";
import type { BillingGateway } from "./payments/gateway.ts";
import type { Metrics } from "./process/metrics.ts";
import type { Position } from "./process/positions.ts";
import type { Sealer } from "./secrets/sealer.ts";

/** What the features of the service work with; made once by `main.ts`, or by a test. */
export interface Services {
  readonly db: PrismaClient;
  readonly keys: SigningKeys;
  readonly sealer: Sealer;
  readonly settings: ServiceSettings;
  readonly metrics: Metrics;
  readonly mailer: Mailer;
  /** The current time; replaceable, so that tests can let hours pass. */
  readonly now: () => Date;
  /** Reports of devices that wait to be written. */
  readonly heartbeats: Heartbeats;
  readonly enrolments: Enrolments;
  /** Who takes the money; features call it by `callGateway` alone. */
  readonly billing: BillingGateway;
  /** Where an IP address is; 0,0 when that is not known. */
  readonly positionOf: (address: string) => Position;
}

/** RSA keys that sign tokens (RS256); the present one also signs the setup link. */
export interface SigningKeys {
  /** Id of the present key. */
  readonly kid: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  /** The public half of a key whose signatures are believed, the present one or an older one. */
  find(kid: string): Promise<KeyObject | undefined>;
}

/** Most requests in a minute; 0: no limit. */
export interface RequestLimits {
  /** Login-type requests of one address, of IPv6 one /64. */
  readonly loginsPerAddress: number;
  /** Login-type requests for one user name, e-mail address or MFA token, from wherever. */
  readonly loginsPerAccount: number;
  /** Devices' reports of one address, counted in each process. */
  readonly reportsPerAddress: number;
  /** Devices that are new, of one address, counted in each process. */
  readonly enrolmentsPerAddress: number;
}

/** The identity provider (SAML 2.0) whose users may log in. */
export interface SamlSettings {
  readonly idpEntityId: string;
  /** Where a browser brings a request (HTTP-Redirect). */
  readonly ssoUrl: string;
  /** Certificates in PEM form with the keys that its signatures are believed of. */
  readonly certificates: readonly string[];
  /** Names of the attributes with a user's e-mail address and name. */
  readonly emailAttribute: string;
  readonly nameAttribute: string;
  /** The identity provider may log in as any user whose e-mail address it names. */
  readonly linkUsers: boolean;
  /** The service's public origin, without a slash at its end. */
  readonly serviceUrl: string;
}

/** How namespaces of a cloud instance pay. */
export interface BillingSettings {
  readonly gateway: "ledger";
  /** How long the gateway may take to answer, in milliseconds. */
  readonly timeout: number;
  /** Of an accepted device in a month, in hundredths of the currency. */
  readonly devicePrice: number;
  readonly currency: "usd" | "brl";
}

export interface ServiceSettings {
  readonly edition: Edition;
  /** Longest lockout in minutes; 0 or less turns lockouts off (rules section 9). */
  readonly maximumLockoutMinutes: number;
  /** Devices of a namespace that may wait to be accepted; 0 or less: any number. */
  readonly maximumPendingDevices: number;
  /** Firewall rules and connectors that a namespace may have; 0 or less: any number. */
  readonly maximumFirewallRules: number;
  readonly maximumConnectors: number;
  /** Most that is kept of the recording of one session, in MiB. */
  readonly maximumRecording: number;
  /** Tunnels that a device may have at a time; 0 or less: any number. */
  readonly maximumTunnels: number;
  /** Domain below which tunnels have their addresses; undefined: the host at which clients reach the service. */
  readonly tunnelsDomain: string | undefined;
  /** Container image of the agent that the install script runs. */
  readonly agentImage: string;
  /** `host:port` that agents are told for SSH and for the API; undefined: taken from the request. */
  readonly sshEndpoint: string | undefined;
  readonly apiEndpoint: string | undefined;
  /** Origin at which clients reach the service, `https://gate.example.org`; undefined: taken from the request. */
  readonly publicUrl: string | undefined;
  /** Undefined: SAML is off. */
  readonly saml: SamlSettings | undefined;
  /** Origins whose pages may call the service from a browser. */
  readonly corsOrigins: readonly string[];
  /** The pages that the service's own links lead to are served. */
  readonly pages: boolean;
  readonly limits: RequestLimits;
  /** Addresses and ranges (`10.0.0.0/8`) of proxies whose headers are believed. */
  readonly trustedProxies: readonly string[];
  readonly billing: BillingSettings;
}
