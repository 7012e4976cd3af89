import { ZERO_DATE } from "@gatehouse-access/sdk/contract";

/**
 * Returns a time in wire format: RFC 3339 with exactly three fraction digits and `Z`. For null, returns the time that
 * represents "no date" (models section 0).
 * @param time a string must already have the wire format
 */
export function wireDate(time: Date | string | null): string {
  if (time === null) return ZERO_DATE;
  return typeof time === "string" ? time : time.toISOString();
}
