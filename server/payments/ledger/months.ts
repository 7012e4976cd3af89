/**
 * A time a number of months later, in UTC; on the month's last day if it lacks the start's day. Counted from a fixed
 * start, so that the 31st of January leads to the 31st of March again.
 */
export function addMonths(start: Date, months: number): Date {
  const moved = new Date(start);
  moved.setUTCDate(1);
  moved.setUTCMonth(moved.getUTCMonth() + months);
  const lastDay = new Date(Date.UTC(moved.getUTCFullYear(), moved.getUTCMonth() + 1, 0)).getUTCDate();
  moved.setUTCDate(Math.min(start.getUTCDate(), lastDay));
  return moved;
}

/** Number, from 0, of the month after the start that contains a time. */
export function monthAt(start: Date, time: Date): number {
  const years = time.getUTCFullYear() - start.getUTCFullYear();
  const months = years * 12 + time.getUTCMonth() - start.getUTCMonth();
  return addMonths(start, months) > time ? months - 1 : months;
}
