import type { TestProject } from "vitest/node";
import { preparePostgresql } from "./database.ts";
import { startPostgresql } from "./server.ts";

declare module "vitest" {
  interface ProvidedContext {
    readonly postgresql: string;
  }
}

/**
 * Starts one PostgreSQL server for all tests of a run. Passes the server's address to the tests with Vitest's
 * `provide`, which affects only this Vitest project. An environment variable would affect all projects.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startPostgresql();
  await preparePostgresql(server.url);
  project.provide("postgresql", server.url);
  return () => server.stop();
}
