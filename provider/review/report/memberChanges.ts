import type { Seat } from "../guards/lockouts.ts";
import { byTexts } from "../words/order.ts";
import type { MemberChange } from "./review.ts";

/** Who comes, goes, or gets another role. */
export function memberChanges(before: readonly Seat[], after: readonly Seat[]): MemberChange[] {
  const was = new Map(before.map((seat) => [seat.email, seat]));
  const is = new Map(after.map((seat) => [seat.email, seat]));
  const changes: MemberChange[] = [];
  for (const { email, role } of before) {
    const now = is.get(email);
    if (!now) changes.push({ change: "removed", email, from: role });
    else if (now.role !== role) changes.push({ change: "role", email, from: role, to: now.role });
  }
  for (const { email, role } of after) {
    if (!was.has(email)) changes.push({ change: "added", email, to: role });
  }
  return changes.sort(byTexts(({ email }) => email));
}
