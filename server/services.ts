import type { PrismaClient } from "./db/generated/sqlite/client.ts";
import type { SqlClient } from "./db/sql/sql.ts";
import type { Enrollments } from "./http/limits/Enrollments.ts";
import type { Mailer } from "./mail/mail.ts";
import type { Metrics } from "./metrics.ts";
import type { PaymentGateway } from "./payments/paymentGateway.ts";
import type { Sealer } from "./secrets/sealer.ts";
import type { SigningKeys } from "./secrets/signingKeys.ts";
import type { ServiceSettings } from "./settings/readConfig.ts";

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
  readonly heartbeats: { beat(uid: string, time: Date): void; flush(): Promise<void> };
  readonly enrollments: Enrollments;
  readonly agentKey: AgentKey;
  /** The payment gateway; features call it only through `callPaymentGateway`. */
  readonly billing: PaymentGateway;
  /** The position of an IP address; 0,0 if it is unknown. */
  readonly positionOf: (address: string) => { readonly latitude: number; readonly longitude: number };
}

/** Services whose database takes SQL alone. */
export type SqlServices = Omit<Services, "db"> & { readonly db: SqlClient };

/** The key pair that logs in to agents, which can pin it. */
export interface AgentKey {
  /** The private key, PEM (PKCS#1). */
  pem(): Promise<string>;
  /** The public key as SSH has it, in base64; undefined while there is none. */
  publicKey(): Promise<string | undefined>;
}
