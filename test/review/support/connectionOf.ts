import { Connection } from "../../../provider/service/connection.ts";
import { createClient, passwordCredential } from "../../../sdk/index.ts";
import { PASSWORD } from "../../server/http/testApp.ts";

/** Connects to a service of the test as a user, whose namespace is the default. */
export function connectionOf(
  url: string,
  { username, tenant }: { readonly username: string; readonly tenant?: string },
): Connection {
  const client = createClient({ url, credential: passwordCredential({ username, password: PASSWORD }) });
  return new Connection(client, tenant === undefined ? {} : { defaultTenant: tenant });
}
