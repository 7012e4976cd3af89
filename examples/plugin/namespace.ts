import * as pulumi from "@pulumi/pulumi";
import * as gatehouse from "@gatehouse-access/pulumi";

const staging = new gatehouse.Namespace("staging", {
    name: "staging",
    settings: {
        sessionRecord: true,
        connectionAnnouncement: "Staging. Break things here.",
    },
});
