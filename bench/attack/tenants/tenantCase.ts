import type { Pool } from "undici";
import type { TestIssuer } from "../../../test/support/issuer.ts";
import type { BenchRequest } from "../../server/cases.ts";
import type { Insert } from "../../server/databases.ts";

/** Name of the namespace and of the user of the hostile tenant of a case. */
export const hostileName = (name: string): string => `hostile-${name}`;

/** The input of {@link TenantCase.seed}. */
export interface Seeding {
  readonly insert: Insert;
  /** Id of the hostile tenant's namespace, which exists and is empty. Its owner has the same id as {@link ownerId}. */
  readonly tenantId: string;
  readonly ownerId: string;
  /** Id of the other tenant's namespace. */
  readonly otherTenantId: string;
  readonly issuer: TestIssuer;
  /** The present time, as the databases store it. */
  readonly now: string;
}

/** The running service, for preparations by its API. */
export interface Place {
  readonly url: string;
  readonly sshPort: number;
  readonly tenantId: string;
  /** Name of the hostile tenant's namespace. */
  readonly namespace: string;
  /** Token of the owner of the hostile tenant's namespace. */
  readonly token: string;
  readonly otherTenantId: string;
  readonly issuer: TestIssuer;
  /** Calls the function after the measurement. */
  onEnd(stop: () => Promise<unknown> | unknown): void;
}

/** The input of an attack in the thread of the attacker. */
export interface Attacker {
  readonly url: string;
  readonly sshPort: number;
  readonly tenantId: string;
  readonly namespace: string;
  readonly token: string;
  readonly pool: Pool;
  /** Counts a result of the attack, such as the status of a response. */
  count(result: string | number): void;
}

/**
 * An input that a tenant chooses and the service evaluates, in its largest allowed amount.
 * @typeParam P data of the preparation for the attacker's thread; only values that threads can exchange
 */
export interface TenantCase<P = unknown> {
  readonly title: string;
  /** Settings of the service. Without limits by address, the attacker has many addresses. */
  readonly env?: Readonly<Record<string, string>>;
  /** Number of concurrent runs of the attack. @default 4 */
  readonly parallel?: number;
  /** Adds the input to the database, before the service starts. */
  seed?(seeding: Seeding): Promise<void>;
  /** Prepares the attack by the API of the running service. */
  prepare?(place: Place): Promise<P>;
  /** Attacks once. The thread repeats the call until the measurement ends. */
  run(attacker: Attacker, prepared: P): Promise<unknown>;
  /**
   * Returns a request of the other tenant. The numbers begin at 0 and do not repeat. If the method is missing, the
   * other tenant lists namespaces.
   */
  other?(prepared: P, index: number): BenchRequest;
}

/**
 * Returns the id of the first seeded firewall rule of a hostile tenant. Seeded ids are much larger than the ids that the
 * database assigns.
 */
export const firstRuleOf = (tenantId: string): number =>
  500_000_000 + Number(tenantId.slice(-12, -3)) * 100_000;

/** Settings without the limits that count by address. */
export const MANY_ADDRESSES = {
  GATEHOUSE_LOGINS_PER_ADDRESS: "0",
  GATEHOUSE_SSH_REFUSALS_PER_ADDRESS: "0",
  GATEHOUSE_SSH_STARTUPS_PER_ADDRESS: "0",
} as const;

/** Sends a request with the tenant's token, reads the response, and counts its status. */
export async function call(
  { pool, token, count }: Attacker,
  method: BenchRequest["method"],
  path: string,
  body?: unknown,
): Promise<number> {
  const headers: Record<string, string> = { authorization: `Bearer ${token}` };
  if (body !== undefined) headers["content-type"] = "application/json";
  const text = body === undefined ? null : JSON.stringify(body);
  const response = await pool.request({ method, path, headers, body: text });
  await response.body.dump({ limit: Number.MAX_SAFE_INTEGER });
  count(response.statusCode);
  return response.statusCode;
}

/** Returns a case whose attack requests paths in turn. */
export const reading = (
  title: string,
  paths: readonly string[],
  more: Pick<TenantCase, "seed" | "parallel"> = {},
): TenantCase => {
  let next = 0;
  return {
    ...more,
    title,
    run: (attacker) => {
      next += 1;
      return call(attacker, "GET", paths[next % paths.length]?.replace("{tenant}", attacker.tenantId) ?? "");
    },
  };
};
