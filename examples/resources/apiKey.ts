import { ApiKey } from "@gatehouse-access/provider";

// The first up in the last two weeks replaces the key. The old key keeps working for three days.
export const ci = new ApiKey("ci", { role: "observer", validDays: 90, rotateBefore: 14, overlap: 3 });
