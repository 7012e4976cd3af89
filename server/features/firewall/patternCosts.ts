import { FIREWALL_PATTERNS_MAX } from "@gatehouse-access/sdk/contract";
import { patternCost, totalPatternCost } from "@gatehouse-access/sdk/policy";
import type { FirewallRule } from "../../db/generated/sqlite/client.ts";
import { readRows, type SqlClient, sql } from "../../db/sql/sql.ts";
import { ForbiddenError } from "../../errors.ts";

/** The columns of a rule that contain patterns. */
type Patterns = Pick<FirewallRule, "username" | "sourceIp" | "hostname">;

const PATTERN_COLUMNS: readonly (keyof Patterns)[] = ["username", "sourceIp", "hostname"];

/** Number of patterns per statement. */
const READ_AT_ONCE = 5000;

const textsOf = (rule: Patterns): string[] => PATTERN_COLUMNS.flatMap((column) => rule[column] ?? []);

/** Yields each distinct pattern in the rules of a namespace, except the rule with the id `exceptId`. */
async function* patternsOf(db: SqlClient, tenantId: string, exceptId: number): AsyncGenerator<string> {
  for (let last: string | undefined = ""; last !== undefined; ) {
    const columns = PATTERN_COLUMNS.map(
      (name) => sql`SELECT ${sql.column(name)} AS "text" FROM "FirewallRule"
        WHERE "tenantId" = ${tenantId} AND "id" <> ${exceptId} AND ${sql.column(name)} > ${last}`,
    );
    const rows: { text: string }[] = await readRows(
      db,
      sql`${sql.join(columns, " UNION ")} ORDER BY "text" LIMIT ${READ_AT_ONCE}`,
    );
    for (const { text } of rows) yield text;
    last = rows.length < READ_AT_ONCE ? undefined : rows.at(-1)?.text;
  }
}

/**
 * Checks the total cost of the patterns in a namespace's firewall rules. If a rule replaces another rule and does not
 * increase the cost, it is allowed even above the maximum.
 * @param rule the new rule
 * @param replaced the rule that the new rule replaces
 * @throws ForbiddenError the cost exceeds the maximum
 */
export async function checkPatternCosts(
  db: SqlClient,
  tenantId: string,
  rule: Patterns,
  replaced?: Patterns & Pick<FirewallRule, "id">,
): Promise<void> {
  const added = new Set(textsOf(rule));
  const removed = new Set(replaced && textsOf(replaced));
  // Patterns that consist of literals cost nothing. An update that keeps the expensive patterns adds no cost.
  if (totalPatternCost([...added].filter((text) => !removed.has(text))) === 0) return;
  let others = 0;
  for await (const text of patternsOf(db, tenantId, replaced?.id ?? 0)) {
    added.delete(text);
    removed.delete(text);
    if (others <= FIREWALL_PATTERNS_MAX) others += patternCost(text);
  }
  const cost = totalPatternCost(added);
  if (others + cost <= FIREWALL_PATTERNS_MAX || cost <= totalPatternCost(removed)) return;
  throw new ForbiddenError(
    `the total cost of the namespace's firewall patterns would exceed ${FIREWALL_PATTERNS_MAX}: use ` +
      "fewer different patterns, smaller patterns, or patterns of literals such as ^web-1$ and ^(?:root|deploy)$, " +
      "which cost nothing",
  );
}
