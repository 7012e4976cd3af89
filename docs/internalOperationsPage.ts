import { internal, internalOperations, type Operation } from "../sdk/contract/index.ts";
import { table } from "./table.ts";

/**
 * The page of the operations that the internal listener serves.
 * @param note says that the page is generated
 */
export function internalOperationsPage(note: string): string {
  // Sorted, since loaders differ in the order of a module's exports.
  const all = (Object.values(internalOperations) as Operation[]).sort((a, b) =>
    a.id.localeCompare(b.id, "en"),
  );
  const head = `# Internal operations

The ${all.length} operations for trusted services on the private network: an SSH entry, and the edge that asks who is
calling. They are served on a listener of their own, which \`GATEHOUSE_INTERNAL_PORT\` opens (see
[settings](server-settings.md)); the public one does not have them, and this one has no others. They are about any
namespace, so keep the listener on a network that nobody else reaches.

Every request carries the token of \`GATEHOUSE_INTERNAL_TOKEN\` (or \`GATEHOUSE_INTERNAL_TOKEN_FILE\`) in the header
\`${internal.INTERNAL_TOKEN}\`. It is not \`Authorization\`, because \`authRequest\` receives that as the end user sent it. A
request without it is answered with 403; 401 is left to \`authRequest\`, for an end user's credential that is no good.

The edge must take ${internal.IDENTITY_HEADERS.map((name) => `\`${name}\``).join(", ")} from the answer of
\`authRequest\` and remove what a client sent under these names. This service believes them from nobody.`;
  const rows = all.map((operation) => [
    `\`${operation.id}\``,
    `\`${operation.method} ${operation.path}\``,
    Object.keys(operation.query.shape)
      .map((name) => `\`${name}\``)
      .join(", "),
    operation.edition,
    operation.summary,
    Object.entries(operation.errors)
      .filter(([status]) => status !== "500")
      .map(([status, text]) => `${status}: ${text}`)
      .join("<br>"),
  ]);
  return [
    note,
    head,
    table(["Operation", "Request", "Query", "Edition", "What it does", "Refusals"], rows),
    SSH_SERVICE,
  ].join("\n\n");
}

const SSH_SERVICE = `## For an SSH service that sends no token

The SSH service of 0.19 calls these operations at \`http://api:8080\` and \`http://cloud:8080\`, and sends no token. A
proxy that has these names on a network of its own, where nobody but that service reaches it, adds the token. For nginx,
with this service's internal listener at 10.0.0.5, port 8081:

\`\`\`nginx
map $http_upgrade $connection_upgrade {
  default Upgrade;
  ""      "";
}
server {
  listen      8080;
  server_name api cloud;
  location /internal/ {
    proxy_pass         http://10.0.0.5:8081;
    proxy_http_version 1.1;
    proxy_set_header   ${internal.INTERNAL_TOKEN} "the token of GATEHOUSE_INTERNAL_TOKEN";
    proxy_set_header   Upgrade    $http_upgrade;
    proxy_set_header   Connection $connection_upgrade;
    proxy_read_timeout 7d;
    proxy_send_timeout 7d;
  }
}
\`\`\`

The first \`proxy_set_header\` is the one that lets the service in; it also replaces what a client sent under that name. The
two after it let WebSockets through (\`streamSessionEvents\`), and the time-outs let them live as long as a login: nothing
is sent over them while nothing happens, and the SSH service does not open another one when they end. Keep the file with
the token from other users. \`GET /api/namespaces/{tenant}\` and \`GET /api/devices/{uid}\`, which that service asks for
without a credential, too, are no internal operations: the public listener answers them for an API key.

Messages of a WebSocket are read one at a time, as fast as they are stored, and may have 200,704 bytes each. There may be
5,000 WebSockets at once; at that limit the oldest ends on which nothing ever came, which the log says. One whose session
is finished or closed ends when nothing came for five minutes.`;
