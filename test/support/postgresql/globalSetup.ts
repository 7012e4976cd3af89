import type { TestProject } from "vitest/node";
import { preparePostgresql } from "./database.ts";
import { startPostgresql } from "./server.ts";

declare module "vitest" {
  interface ProvidedContext {
    readonly postgresql: string;
  }
}

/**
 * Starts one PostgreSQL server for all tests of a run. Vitest provides its address to this project only. All projects
 * would receive an environment variable.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startPostgresql();
  await preparePostgresql(server.url);
  project.provide("postgresql", server.url);
  return () => server.stop();
}
