import { expect } from "vitest";
import type { Services } from "../../../server/services.ts";

interface Row {
  readonly key: string;
  readonly count: number | bigint;
}

const KEPT = `SELECT "tenantId" || ' ' || "status" || CASE WHEN "container" THEN ' container' ELSE '' END AS key,
  SUM("count") AS count FROM "DeviceCount" GROUP BY 1 HAVING SUM("count") <> 0`;
const COUNTED = `SELECT "tenantId" || ' ' || "status" || CASE WHEN "infoPlatform" = 'connector' THEN ' container' ELSE '' END AS key,
  COUNT(*) AS count FROM "Device" GROUP BY 1`;

/** Expects that the counts that triggers maintain equal the numbers of devices, in every namespace. */
export async function expectExactCounts(db: Pick<Services["db"], "$queryRawUnsafe">): Promise<void> {
  const numbers = async (query: string) => {
    const rows = await db.$queryRawUnsafe<Row[]>(query);
    return Object.fromEntries(rows.map(({ key, count }) => [key, Number(count)]));
  };
  expect(await numbers(KEPT)).toEqual(await numbers(COUNTED));
}
