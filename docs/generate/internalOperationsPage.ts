import { internal, internalOperations, type Operation } from "../../sdk/contract/index.ts";
import { table } from "./table.ts";

/**
 * Returns the page about the operations of the internal listener.
 * @param note the comment that states that the page is generated
 */
export function internalOperationsPage(note: string): string {
  // The operations are sorted, because the order of a module's exports depends on the module loader.
  const all = (Object.values(internalOperations) as Operation[]).sort((a, b) =>
    a.id.localeCompare(b.id, "en"),
  );
  const head = `# Internal operations

The service has ${all.length} operations for trusted services on the private network, such as an SSH gateway or an edge
proxy that authenticates callers. A separate listener serves them. \`GATEHOUSE_INTERNAL_PORT\` opens this listener (see
[settings](server-settings.md)). The public listener does not serve internal operations, and the internal listener
serves only internal operations. Internal operations give access to every namespace, so restrict the network of the
listener to trusted services.

Every request must contain the token of \`GATEHOUSE_INTERNAL_TOKEN\` (or \`GATEHOUSE_INTERNAL_TOKEN_FILE\`) in the header
\`${internal.INTERNAL_TOKEN}\`. The header is not \`Authorization\`, because \`authRequest\` receives the end user's
\`Authorization\` header. A request without the token is refused with 403. Only \`authRequest\` returns 401, for an invalid
credential of an end user.

The edge must copy ${internal.IDENTITY_HEADERS.map((name) => `\`${name}\``).join(", ")} from the response of
\`authRequest\`, and remove headers with these names from the client's request. This service does not use these headers to
authenticate a caller.`;
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
    table(["Operation", "Request", "Query", "Edition", "Description", "Errors"], rows),
    SSH_SERVICE,
  ].join("\n\n");
}

const SSH_SERVICE = `## For an SSH service that sends no token

The SSH service of 0.19 calls these operations at \`http://api:8080\` and \`http://cloud:8080\`, and sends no token. Run a
proxy with these names on a separate network that only the SSH service can reach. The proxy adds the token. For nginx,
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

The first \`proxy_set_header\` adds the token. It also replaces a header of that name from a client. The next two lines
allow WebSockets (\`streamSessionEvents\`). The time-outs keep a WebSocket open for the duration of the login: the
WebSocket carries no data while the session is idle, and the SSH service does not reopen it. Make the configuration file
with the token readable only by the proxy's user. The SSH service also requests \`GET /api/namespaces/{tenant}\` and
\`GET /api/devices/{uid}\` without a credential. These operations are not internal: the public listener serves them, with an
API key.

The service reads the messages of a WebSocket one at a time, as fast as it can store them. The maximum size of a message
is 200,704 bytes. The maximum number of open WebSockets is 5,000. At this limit, the service closes the oldest WebSocket
that never received a message, and logs the closing. A WebSocket of a session that is finished or closed ends after five
minutes without a message.`;
