import { PrismaPg } from "@prisma/adapter-pg";
import type { SqlQuery } from "@prisma/driver-adapter-utils";
import type { DatabaseLocation } from "../../../server/db/Database.ts";
import { PrismaClient } from "../../../server/db/generated/postgresql/client.ts";
import { openDatabase } from "../../../server/db/openDatabase.ts";
import { readDirectly, readingBy } from "../../../server/db/sql/sql.ts";
import type { Services } from "../../../server/services.ts";
import { type RecordingDatabase, recording } from "../plans/recording.ts";

/** The properties of a step of a query plan that tests check. */
interface Step {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Index Cond"?: string;
  readonly "Total Cost": number;
  readonly Plans?: readonly Step[];
}

const stepsOf = (step: Step): Step[] => [step, ...(step.Plans ?? []).flatMap(stepsOf)];

/** Returns the table that a step reads completely. The name of an index begins with the name of its table. */
function scanned(step: Step): string[] {
  const type = step["Node Type"];
  const whole = type === "Seq Scan" || (/^(Bitmap )?Index/.test(type) && step["Index Cond"] === undefined);
  return whole ? [step["Relation Name"] ?? step["Index Name"]?.split("_")[0] ?? type] : [];
}

/**
 * PostgreSQL may choose either of two plans whose costs differ by at most one percent. Tests therefore ignore a step
 * that causes at most one percent of the plan's cost.
 */
const counts = (step: Step, plan: Step) => step["Total Cost"] > plan["Total Cost"] / 100;

/** Planner options that make PostgreSQL use an index wherever possible, and read rows one by one. */
const PLANNER = ["seqscan", "hashjoin", "mergejoin"].map((way) => `-c enable_${way}=off`).join(" ");

/**
 * Opens a new PostgreSQL database that returns query plans. A plan uses an index whenever one exists, even if the
 * statistics of a small database make a scan cheaper.
 */
export async function openRecordingPostgresql(location: DatabaseLocation): Promise<RecordingDatabase> {
  if (!("url" in location)) throw new Error("this test needs PostgreSQL");
  const { url } = location;
  // Opens the database once as the service does, which creates the tables.
  await (await openDatabase({ url, connections: 2 })).close();
  let queries: SqlQuery[] = [];
  const { factory } = recording(new PrismaPg({ connectionString: url, max: 10 }), (query) =>
    queries.push(query),
  );
  const adapter = await factory.connect();
  const client = new PrismaClient({ adapter: { ...factory, connect: async () => adapter } });
  readDirectly(client, readingBy(adapter));
  const planner = await new PrismaPg({ connectionString: url, options: PLANNER }).connect();
  return {
    client: client as unknown as Services["db"],
    takeQueries: () => {
      const taken = queries;
      queries = [];
      return taken;
    },
    planOf: async (query) => {
      const { rows } = await planner.queryRaw({ ...query, sql: `EXPLAIN (FORMAT JSON) ${query.sql}` });
      const explained = rows[0]?.[0];
      const text = typeof explained === "string" ? explained : JSON.stringify(explained);
      const [{ Plan: plan }] = JSON.parse(text) as [{ Plan: Step }];
      const steps = stepsOf(plan);
      return {
        scans: steps.filter((step) => counts(step, plan)).flatMap(scanned),
        sorts: steps.some((step) => step["Node Type"] === "Sort"),
        text: `${query.sql}\n${text}`,
      };
    },
    close: async () => {
      await client.$disconnect();
      await planner.dispose();
    },
  };
}
