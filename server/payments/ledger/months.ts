/**
 * Returns the time that is a number of months after a start time, in UTC. If the month has no such day, the result is
 * the last day of the month. Callers count all months from the same start, so that the months from January 31 include
 * March 31.
 */
export function addMonths(start: Date, months: number): Date {
  const moved = new Date(start);
  moved.setUTCDate(1);
  moved.setUTCMonth(moved.getUTCMonth() + months);
  const lastDay = new Date(Date.UTC(moved.getUTCFullYear(), moved.getUTCMonth() + 1, 0)).getUTCDate();
  moved.setUTCDate(Math.min(start.getUTCDate(), lastDay));
  return moved;
}

/** Returns the number of the month that contains a time. Month 0 begins at the start. */
export function monthAt(start: Date, time: Date): number {
  const years = time.getUTCFullYear() - start.getUTCFullYear();
  const months = years * 12 + time.getUTCMonth() - start.getUTCMonth();
  return addMonths(start, months) > time ? months - 1 : months;
}
