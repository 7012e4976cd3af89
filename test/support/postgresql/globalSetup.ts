import { startPostgresql } from "./server.ts";

/** One PostgreSQL for all tests of a run; the workers inherit its address. */
export default async function setup(): Promise<() => Promise<void>> {
  const server = await startPostgresql();
  process.env.GATEHOUSE_TEST_POSTGRESQL = server.url;
  return () => server.stop();
}
