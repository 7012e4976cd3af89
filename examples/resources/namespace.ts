import { Namespace } from "@gatehouse-access/provider";

export const staging = new Namespace("staging", {
  name: "staging",
  settings: {
    sessionRecord: true,
    connectionAnnouncement: "Staging environment.",
    sessionMaxMinutes: 480,
    sessionIdleMinutes: 15,
    sshForwarding: [{ login: "^deploy$", target: "^db-[0-9]+\\.internal:5432$" }],
  },
});
