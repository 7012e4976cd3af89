const DAY = 24 * 60 * 60;
const YEAR = 365;

/** Unix second at which a key of so many days expires: 365 means a calendar year, -1 never (rules 15.2). */
export function expiryOf(days: number, now: Date): number {
  if (days < 0) return -1;
  if (days !== YEAR) return Math.floor(now.getTime() / 1000) + days * DAY;
  const end = new Date(now);
  end.setUTCFullYear(end.getUTCFullYear() + 1);
  return Math.floor(end.getTime() / 1000);
}
