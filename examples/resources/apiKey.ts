import { ApiKey } from "@gatehouse-access/provider";

// Replaced by the first up in its last two weeks; the old key goes on for three days.
export const ci = new ApiKey("ci", { role: "observer", validDays: 90, rotateBefore: 14, overlap: 3 });
