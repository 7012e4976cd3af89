import { emptyPostgresql } from "./postgresql/database.ts";
import { type Relay, startRelay } from "./relay.ts";
import { startService, type TestService } from "./service.ts";

/** The secret that all instances of the service in a test share. */
export const INSTANCE_SECRET = "the secret that the instances of a test share";

/** The token for calls between the instances of a test. */
export const INTERNAL_TOKEN = "internal-token-of-the-instances-of-a-test";

type Environment = Readonly<Record<string, string>>;

/** Several processes of the service on one PostgreSQL database, each with its own data folder. */
export interface Instances {
  readonly databaseUrl: string;
  readonly services: readonly TestService[];
  /** Stops the instances, and removes their folders and the database. */
  stop(): Promise<void>;
}

/**
 * Starts several instances concurrently on a new, empty database.
 * @param address address of a PostgreSQL server
 * @param more additional environment variables. A function receives the index of each instance and returns its
 * variables.
 * @param prepare runs with the address of the new database before the instances start
 */
export async function startInstances(
  address: string,
  count: number,
  more: Environment | ((index: number) => Environment) = {},
  prepare?: (databaseUrl: string) => Promise<unknown>,
): Promise<Instances> {
  const database = await emptyPostgresql(address);
  await prepare?.(database.url);
  const settings = typeof more === "function" ? more : () => more;
  const env = {
    GATEHOUSE_DATABASE_URL: database.url,
    GATEHOUSE_SECRET: INSTANCE_SECRET,
    // Disables this rate limit, since tests log in from one address more often than users.
    GATEHOUSE_LOGINS_PER_ADDRESS: "0",
  };
  const starts = await Promise.allSettled(
    Array.from({ length: count }, (_, index) => startService({ env: { ...env, ...settings(index) } })),
  );
  const services = starts.flatMap((start) => (start.status === "fulfilled" ? [start.value] : []));
  const stop = async () => {
    await Promise.all(services.map((service) => service.stop()));
    await database.drop();
  };
  const failed = starts.find((start) => start.status === "rejected");
  if (failed) {
    await stop();
    throw failed.reason;
  }
  return { databaseUrl: database.url, services, stop };
}

/**
 * Starts instances that forward connections to each other's devices, see {@link startInstances}. A relay in front of
 * each instance has a fixed address, since an instance announces its address before it has a port.
 */
export async function startPeers(
  address: string,
  count: number,
  more: Environment | ((index: number) => Environment),
  prepare?: (databaseUrl: string) => Promise<unknown>,
): Promise<Instances> {
  const relays: Relay[] = [];
  let instances: Instances | undefined;
  const stop = async () => {
    for (const relay of relays) relay.stop();
    await instances?.stop();
  };
  for (let index = 0; index < count; index += 1) {
    const internal = () =>
      instances?.services[index]?.logs().find(({ msg }) => msg === "listening for internal operations")
        ?.address;
    relays.push(await startRelay(() => Number(new URL(String(internal())).port)));
  }
  const env = (index: number) => ({
    GATEHOUSE_INTERNAL_PORT: "0",
    GATEHOUSE_INTERNAL_TOKEN: INTERNAL_TOKEN,
    GATEHOUSE_PEER_URL: relays[index]?.url ?? "",
    GATEHOUSE_SSH_PORT: "0",
    ...(typeof more === "function" ? more(index) : more),
  });
  instances = await startInstances(address, count, env, prepare).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return { ...instances, stop };
}
