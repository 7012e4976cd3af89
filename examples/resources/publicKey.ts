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
  // `dependsOn` is required only for tags from a Tag resource. For literal tags, the order is automatic.
  { dependsOn: gateways },
);
