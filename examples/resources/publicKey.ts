import { login, PublicKey, sshKeyFile } from "@gatehouse-access/provider";
import { gateways } from "./deviceTags";
import { edge } from "./tag";

export const ana = new PublicKey(
  "ana",
  {
    name: "Ana, gateways",
    data: sshKeyFile("keys/ana.pub"),
    username: login("root", "ana"), // ^(ana|root)$
    filter: { tags: [edge.name] },
  },
  // Only where a tag comes from a Tag: for tags written out, the order comes by itself.
  { dependsOn: gateways },
);
