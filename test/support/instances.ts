import { emptyPostgresql } from "./postgresql/database.ts";
import { type Relay, startRelay } from "./relay.ts";
import { startService, type TestService } from "./service.ts";

/** The secret of the instances of a test, which are no good for anything else. */
export const INSTANCE_SECRET = "the secret that the instances of a test share";

type Environment = Readonly<Record<string, string>>;

/** Several processes of the service on one PostgreSQL database, each with a data folder of its own. */
export interface Instances {
  readonly databaseUrl: string;
  readonly services: readonly TestService[];
  /** Ends them and removes their folders and the database. */
  stop(): Promise<void>;
}

/**
 * Starts instances, all at once, on a new, empty database.
 * @param address of a PostgreSQL
 * @param more settings, as environment variables; of each instance by its number, from 0, where they differ
 */
export async function startInstances(
  address: string,
  count: number,
  more: Environment | ((index: number) => Environment) = {},
): Promise<Instances> {
  const database = await emptyPostgresql(address);
  const settings = typeof more === "function" ? more : () => more;
  const env = {
    GATEHOUSE_DATABASE_URL: database.url,
    GATEHOUSE_SECRET: INSTANCE_SECRET,
    // Tests log in from one address, more often than people do.
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
 * As {@link startInstances}, of instances that pass connections to devices on to each other. Each is reached through a
 * relay: an instance says at its start where it is reached, before it has a port.
 */
export async function startPeers(
  address: string,
  count: number,
  more: Environment | ((index: number) => Environment),
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
  instances = await startInstances(address, count, (index) => ({
    GATEHOUSE_INTERNAL_PORT: "0",
    GATEHOUSE_INTERNAL_TOKEN: "internal-token-of-the-instances-of-a-test",
    GATEHOUSE_PEER_URL: relays[index]?.url ?? "",
    GATEHOUSE_SSH_PORT: "0",
    ...(typeof more === "function" ? more(index) : more),
  })).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return { ...instances, stop };
}
