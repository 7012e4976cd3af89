import type { Services } from "../../services.ts";

/** How long an account may wait to be confirmed, in milliseconds: strangers make them, and they hold a name. */
const WAITING = 7 * 24 * 60 * 60_000;

/**
 * Removes tokens of mails that are too old, accounts that nobody confirmed in a week, and invited users whom no
 * namespace invites any more. An account with a membership stays.
 */
export async function forgetAccounts({ db, now }: Pick<Services, "db" | "now">): Promise<void> {
  const time = now();
  await db.mailToken.deleteMany({ where: { expiresAt: { lte: time } } });
  const alone = { memberships: { none: {} }, owned: { none: {} } };
  await db.user.deleteMany({
    where: {
      ...alone,
      status: "not-confirmed",
      createdAt: { lte: new Date(time.getTime() - WAITING) },
      // The mail was asked for again.
      mailTokens: { none: {} },
    },
  });
  await db.user.deleteMany({ where: { ...alone, status: "invited" } });
}
