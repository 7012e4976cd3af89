import { internal, internalOperations, type Operation } from "../sdk/dist/contract/index.js";
import { table } from "./table.ts";

/**
 * The page of the operations that the internal listener serves.
 * @param note that the page is generated
 */
export function internalOperationsPage(note: string): string {
  // The order of a module's exports is not the same for every loader.
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
  ].join("\n\n");
}
