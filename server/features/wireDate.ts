import { ZERO_DATE } from "@gatehouse-access/sdk/contract";

/** A time in its wire format: exactly three fraction digits and `Z`; "no date" for null (models section 0). */
export function wireDate(time: Date | null): string {
  return time === null ? ZERO_DATE : time.toISOString();
}
