import { ApiKey } from "@gatehouse-access/provider";

// The first `up` within two weeks before the expiry replaces the key. The old key remains valid for three more days.
export const ci = new ApiKey("ci", { role: "observer", validDays: 90, rotateBefore: 14, overlap: 3 });
