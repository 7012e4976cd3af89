import type { TestProject } from "vitest/node";
import { preparePostgresql } from "./database.ts";
import { startPostgresql } from "./server.ts";

declare module "vitest" {
  interface ProvidedContext {
    readonly postgresql: string;
  }
}

/** One PostgreSQL for all tests of a run. Only this project learns of it: an environment variable reached them all. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startPostgresql();
  await preparePostgresql(server.url);
  project.provide("postgresql", server.url);
  return () => server.stop();
}
