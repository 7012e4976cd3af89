import type { KeyObject } from "node:crypto";
import type { Edition } from "@gatehouse-access/sdk/contract";
import type { PrismaClient } from "./db/generated/sqlite/client.ts";
import type { Metrics } from "./metrics.ts";

/** What the features of the service work with; made once by `main.ts`, or by a test. */
export interface Services {
  readonly db: PrismaClient;
  readonly keys: SigningKeys;
  readonly settings: ServiceSettings;
  readonly metrics: Metrics;
  /** The current time; replaceable, so that tests can let hours pass. */
  readonly now: () => Date;
}

/** RSA key pair that signs tokens (RS256) and the setup link. */
export interface SigningKeys {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

/** Most requests in a minute; 0: no limit. */
export interface RequestLimits {
  /** Login-type requests of one address, of IPv6 one /64. */
  readonly loginsPerAddress: number;
  /** Login-type requests for one user name, e-mail address or MFA token, from wherever. */
  readonly loginsPerAccount: number;
  /** Devices' reports of one address, counted in each process. */
  readonly reportsPerAddress: number;
}

export interface ServiceSettings {
  readonly edition: Edition;
  /** Longest lockout in minutes; 0 or less turns lockouts off (rules section 9). */
  readonly maximumLockoutMinutes: number;
  /** `host:port` that agents are told for SSH and for the API; undefined: taken from the request. */
  readonly sshEndpoint: string | undefined;
  readonly apiEndpoint: string | undefined;
  /** Origin at which clients reach the service, `https://gate.example.org`; undefined: taken from the request. */
  readonly publicUrl: string | undefined;
  /** Origins whose pages may call the service from a browser. */
  readonly corsOrigins: readonly string[];
  readonly limits: RequestLimits;
  /** Addresses and ranges (`10.0.0.0/8`) of proxies whose headers are believed. */
  readonly trustedProxies: readonly string[];
}
