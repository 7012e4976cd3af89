import * as pulumi from "@pulumi/pulumi";
import * as gatehouse from "@gatehouse-access/pulumi";

const ana = new gatehouse.PublicKey("ana", {
    name: "Ana, gateways",
    data: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJJ4sTd5ZpkJMcxWmfOzWvCXMTc7GT9FvbMrZyApQzJY",
    username: "^(ana|root)$",
    filter: {
        tags: ["edge"],
    },
});
