import { listSshIdentities } from "@gatehouse-access/sdk";
import type { ListingSource } from "../service/listings.ts";
import { type ItemOf, listOf, wholeSource } from "../service/wholeLists.ts";

/** The SSH key of a user or a service account, as the service returns it. */
export type SshIdentity = ItemOf<typeof listSshIdentities>;

/**
 * The SSH keys of users and service accounts in a namespace, by id. API keys cannot read the list. Only an owner or
 * administrator sees all keys. Other members see only their own keys.
 */
export const sshIdentities: ListingSource<SshIdentity> = (client) =>
  wholeSource("PublicKey", () => listOf(client, listSshIdentities, { query: { all: true } }));
