import { ZERO_DATE } from "@gatehouse-access/sdk/contract";

/**
 * A time in its wire format: exactly three fraction digits and `Z`; "no date" for null (models section 0).
 * @param time as a text: in its wire format already
 */
export function wireDate(time: Date | string | null): string {
  if (time === null) return ZERO_DATE;
  return typeof time === "string" ? time : time.toISOString();
}
