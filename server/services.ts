import type { DecisionTurns } from "./DecisionTurns.ts";
import type { PrismaClient } from "./db/generated/sqlite/client.ts";
import type { SqlClient } from "./db/sql/sql.ts";
import type { FullRecordings } from "./features/sessions/FullRecordings.ts";
import type { IssuerKeys } from "./features/trustedWorkloads/issuerKeys.ts";
import type { Enrollments } from "./http/limits/Enrollments.ts";
import type { Mailer } from "./mail/mail.ts";
import type { Metrics } from "./metrics.ts";
import type { NamespacePatterns } from "./NamespacePatterns.ts";
import type { PaymentGateway } from "./payments/paymentGateway.ts";
import type { Sealer } from "./secrets/sealer.ts";
import type { SigningKeys } from "./secrets/signingKeys.ts";
import type { ServiceSettings } from "./settings/readConfig.ts";

/** The dependencies of all features. `process/serve.ts` or a test creates the dependencies once. */
export interface Services {
  readonly db: PrismaClient;
  readonly keys: SigningKeys;
  readonly sealer: Sealer;
  readonly settings: ServiceSettings;
  readonly metrics: Metrics;
  readonly mailer: Mailer;
  /** Returns the current time. Tests replace this function to advance the time. */
  readonly now: () => Date;
  /** Returns the time by which access expires. This time is the same on all instances, and never goes back. */
  readonly accessTime: () => Date;
  /** Collects device reports that are waiting to be written to the database. */
  readonly heartbeats: { beat(uid: string, time: Date): void; flush(): Promise<void> };
  readonly enrollments: Enrollments;
  /** Runs the decisions whose cost a tenant controls, such as the evaluation of a namespace's firewall rules. */
  readonly decisions: DecisionTurns;
  /** The compiled patterns of the namespaces. */
  readonly patterns: NamespacePatterns;
  readonly agentKey: AgentKey;
  /** The keys of the OpenID Connect providers that issue the tokens of trusted workloads. */
  readonly issuerKeys: IssuerKeys;
  readonly fullRecordings: FullRecordings;
  /** The payment gateway. Features call it only through `callPaymentGateway`. */
  readonly billing: PaymentGateway;
  /** Returns the position of an IP address. Returns 0,0 if the position is unknown. */
  readonly positionOf: (address: string) => { readonly latitude: number; readonly longitude: number };
}

/** Services whose `db` client executes only SQL, without Prisma's model methods. */
export type SqlServices = Omit<Services, "db"> & { readonly db: SqlClient };

/** The key pair with which the service logs in to agents. Agents can pin the public key. */
export interface AgentKey {
  /** Returns the private key as PEM (PKCS#1). */
  pem(): Promise<string>;
  /** Returns the public key in SSH's wire format, in base64. Returns undefined if no key exists. */
  publicKey(): Promise<string | undefined>;
}
