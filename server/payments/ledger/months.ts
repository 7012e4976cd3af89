/**
 * Returns a time a number of months later, in UTC. If that month is too short, the result is its last day. Months
 * count from a fixed start, so the series from January 31 contains March 31.
 */
export function addMonths(start: Date, months: number): Date {
  const moved = new Date(start);
  moved.setUTCDate(1);
  moved.setUTCMonth(moved.getUTCMonth() + months);
  const lastDay = new Date(Date.UTC(moved.getUTCFullYear(), moved.getUTCMonth() + 1, 0)).getUTCDate();
  moved.setUTCDate(Math.min(start.getUTCDate(), lastDay));
  return moved;
}

/** Returns the number, from 0, of the month after the start that contains a time. */
export function monthAt(start: Date, time: Date): number {
  const years = time.getUTCFullYear() - start.getUTCFullYear();
  const months = years * 12 + time.getUTCMonth() - start.getUTCMonth();
  return addMonths(start, months) > time ? months - 1 : months;
}
