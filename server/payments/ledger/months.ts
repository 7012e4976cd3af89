/**
 * So many months later, in UTC; where a month has no such day, on its last one. Counted from one start, so that the
 * 31st of January leads to the 31st of March again.
 */
export function addMonths(start: Date, months: number): Date {
  const moved = new Date(start);
  moved.setUTCDate(1);
  moved.setUTCMonth(moved.getUTCMonth() + months);
  const lastDay = new Date(Date.UTC(moved.getUTCFullYear(), moved.getUTCMonth() + 1, 0)).getUTCDate();
  moved.setUTCDate(Math.min(start.getUTCDate(), lastDay));
  return moved;
}

/** Number of the month after the start that a time is in, from 0. */
export function monthAt(start: Date, time: Date): number {
  const years = time.getUTCFullYear() - start.getUTCFullYear();
  const months = years * 12 + time.getUTCMonth() - start.getUTCMonth();
  return addMonths(start, months) > time ? months - 1 : months;
}
