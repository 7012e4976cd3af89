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
  // `dependsOn` is required only if the tags come from a `Tag` resource. With literal tags, Gatehouse creates the
  // resources in the correct order automatically.
  { dependsOn: gateways },
);
