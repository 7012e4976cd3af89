import { ZERO_DATE } from "@gatehouse-access/sdk/contract";

/**
 * Returns a time in wire format: exactly three fraction digits and `Z`; "no date" for null (models section 0).
 * @param time a string must already have the wire format
 */
export function wireDate(time: Date | string | null): string {
  if (time === null) return ZERO_DATE;
  return typeof time === "string" ? time : time.toISOString();
}
