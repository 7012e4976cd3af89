import { Namespace } from "@gatehouse-access/provider";

export const staging = new Namespace("staging", {
  name: "staging",
  settings: { sessionRecord: true, connectionAnnouncement: "Staging. Break things here." },
});
