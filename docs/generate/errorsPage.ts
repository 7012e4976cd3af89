import { commandErrors, resourceErrors } from "../../provider/errorCodes.ts";
import { type ErrorKind, sdkErrors } from "../../sdk/errors.ts";
import { table } from "./table.ts";

const section = (title: string, intro: string, kinds: Readonly<Record<string, ErrorKind>>): string =>
  [
    `## ${title}`,
    intro,
    table(
      ["Code", "Cause", "Remedy"],
      Object.entries(kinds).map(([code, { cause, remedy }]) => [`\`${code}\``, cause, remedy]),
    ),
  ].join("\n\n");

/**
 * Returns the page of error codes, generated from the error catalogs of the SDK and the provider.
 * @param note the comment that states that the page is generated
 */
export const errorsPage = (note: string): string =>
  `${[
    "# Error codes",
    note,
    "Every error has a code, which stays the same in later releases. `gatehouse` prints the code at the end of the message, as do the diagnostics of Terraform and Pulumi. Example: `error: GATEHOUSE_URL is not set. Set it to … [configuration]`. Terraform also shows the attribute.",
    "With `--json`, a failed command prints `error` with the fields `code`, `message` and `detail` (the cause). If they are known, it also prints `resource`, `field` (a path), `value` (never a secret), `remedy` and `requestId`. Search the log of the service for the request id. Errors of requests also contain `operation`, `status`, `outcome` and the fields of their class (`fields`, `retryAfter`, …). In programs, `GatehouseError` of the SDK has the same properties.",
    section(
      "Requests",
      "Errors of requests to the service: the `Error` classes of `@gatehouse-access/sdk`.",
      sdkErrors,
    ),
    section("Resources", "Errors of a single resource of a program.", resourceErrors),
    section("Commands", "Errors of `gatehouse` and of the engines that run programs.", commandErrors),
  ].join("\n\n")}\n`;
