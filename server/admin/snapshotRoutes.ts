import type { FastifyInstance } from "fastify";
import type { Snapshots } from "../db/sqlite/snapshots.ts";
import { InvalidError } from "../errors.ts";
import { CHANGES_HEADER, type DatabaseChanges } from "./requests.ts";

/** Adds the routes that send copies of the database, for backups and the move to PostgreSQL. */
export function registerSnapshots(app: FastifyInstance, snapshots: Snapshots | undefined): void {
  const needed = (): Snapshots => {
    if (snapshots) return snapshots;
    throw new InvalidError(
      "The service keeps its data in PostgreSQL. Copy it with PostgreSQL's programs: " +
        "`pg_dump --format=custom --file=<file> <database>` and `pg_restore`",
    );
  };

  app.get("/database", async (request, reply) => {
    const { file, size, changes } = await needed().take();
    request.log.info({ bytes: size }, "database copied by an administrator");
    return reply
      .header("content-type", "application/vnd.sqlite3")
      .header("content-length", size)
      .header(CHANGES_HEADER, changes)
      .send(file.createReadStream());
  });

  app.get("/database/changes", async (): Promise<DatabaseChanges> => ({ changes: await needed().changes() }));
}
