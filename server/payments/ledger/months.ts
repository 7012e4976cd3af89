/**
 * Adds a number of months to a start time, in UTC. If the resulting month does not have that day, returns the last day
 * of the month. Callers must add to the original start time for every month. If they added one month at a time, January
 * 31 would become February 28 and then March 28.
 */
export function addMonths(start: Date, months: number): Date {
  const moved = new Date(start);
  moved.setUTCDate(1);
  moved.setUTCMonth(moved.getUTCMonth() + months);
  const lastDay = new Date(Date.UTC(moved.getUTCFullYear(), moved.getUTCMonth() + 1, 0)).getUTCDate();
  moved.setUTCDate(Math.min(start.getUTCDate(), lastDay));
  return moved;
}

/** Returns the number of whole months from the start to a time. The result is 0 in the first month. */
export function monthAt(start: Date, time: Date): number {
  const years = time.getUTCFullYear() - start.getUTCFullYear();
  const months = years * 12 + time.getUTCMonth() - start.getUTCMonth();
  return addMonths(start, months) > time ? months - 1 : months;
}
