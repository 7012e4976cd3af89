import { ApiKey } from "@gatehouse-access/provider";

// The first `up` in the last two weeks before the expiry replaces the key. The old key remains valid for three more
// days.
export const ci = new ApiKey("ci", { role: "observer", validDays: 90, rotateBefore: 14, overlap: 3 });
