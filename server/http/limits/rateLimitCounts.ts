import { DAY } from "@gatehouse-access/sdk/times";
import { sql } from "../../db/sql/sql.ts";
import { hasPeriodEnded, latestEnd } from "../../periods.ts";
import { digestOf } from "../../secrets/digest.ts";
import type { Services } from "../../services.ts";
import { type Counted, WINDOW } from "./memoryCounts.ts";

/**
 * Counts a request in the database, for all instances of the service. The count is a single SQL statement, so that
 * concurrent requests are counted correctly.
 * @param window length of the window, in milliseconds; must be the same for each call with the same key
 */
export async function countInDatabase(
  { db, now }: Services,
  key: string,
  window: number = WINDOW,
): Promise<Counted> {
  const time = now().getTime();
  const [start, end, latest] = [BigInt(time), BigInt(time + window), BigInt(latestEnd(time, window))];
  const ended = sql`"RateLimit"."endsAt" <= ${start} OR "RateLimit"."endsAt" > ${latest}`;
  const [row] = await db.$queryRaw<{ count: number | bigint; endsAt: number | bigint }[]>(
    sql`INSERT INTO "RateLimit" ("key", "count", "endsAt") VALUES (${key}, 1, ${end})
      ON CONFLICT ("key") DO UPDATE SET
        "count" = CASE WHEN ${ended} THEN 1 ELSE "RateLimit"."count" + 1 END,
        "endsAt" = CASE WHEN ${ended} THEN ${end} ELSE "RateLimit"."endsAt" END
      RETURNING "count", "endsAt"`,
  );
  if (row === undefined) throw new Error("the database counted a request and returned no count");
  const counted = { count: Number(row.count), endsAt: Number(row.endsAt) };
  // Delete ended windows. Otherwise, an attacker who tries many names could fill the disk.
  if (counted.count === 1) await db.rateLimit.deleteMany({ where: { endsAt: { lte: start } } });
  return counted;
}

/**
 * Time, in milliseconds, for which a network is known for an account. A network becomes known when it sends the
 * account's correct password.
 */
const KNOWN = 30 * DAY;

/** Returns the key under which a known network of an account is stored. The key contains a digest of the account. */
const knownKey = (account: string, network: string): string =>
  `known ${digestOf(account.toLowerCase())} from ${network}`;

/** Records that a network sent the account's correct password. */
export async function rememberNetwork(
  { db, now }: Services,
  account: string,
  network: string,
): Promise<void> {
  const key = knownKey(account, network);
  const row = { count: 0, endsAt: BigInt(now().getTime() + KNOWN) };
  await db.rateLimit.upsert({ where: { key }, create: { key, ...row }, update: row });
}

/** Returns true if the network is known for the account: the network recently sent the account's correct password. */
export async function isKnownNetwork(
  { db, now }: Services,
  account: string,
  network: string,
): Promise<boolean> {
  const row = await db.rateLimit.findUnique({ where: { key: knownKey(account, network) } });
  return row !== null && !hasPeriodEnded(Number(row.endsAt), now().getTime(), KNOWN);
}
