import { randomUUID } from "node:crypto";
import { putRow } from "../../db/sql/rows.ts";
import type { Mail } from "../../mail/mail.ts";
import { digestOf } from "../../secrets/digest.ts";
import type { Services, SqlServices } from "../../services.ts";

/** The purposes of mails about an account. */
export type AccountPurpose = "activation" | "recovery" | "mfaReset";

/**
 * A request for a mail to the owner of an account. When the service sends the mail, it checks that the account exists.
 */
export interface AccountRequest {
  readonly purpose: AccountPurpose;
  /** User name or e-mail address, in lower case. */
  readonly account: string;
}

type Content = { readonly mail: Mail } | { readonly request: AccountRequest };

const purposeOf = (id: string): string => `mail ${id}`;

async function put(services: SqlServices, id: string, content: Content): Promise<void> {
  const now = services.now();
  const sealed = services.sealer.seal(JSON.stringify(content), purposeOf(id));
  await putRow(services.db, "OutgoingMail", { id }, { sealed }, { createdAt: now, dueAt: now });
}

/** Queues a mail in the current transaction. The service sends it after the commit. */
export function queueMail(services: SqlServices, mail: Mail): Promise<void> {
  return put(services, randomUUID(), { mail });
}

/**
 * Queues a mail to the owner of an account. The service sends the mail only if the account exists. This function does
 * not look up the user, so that the response time does not reveal whether the account exists. Repeating a request has
 * no effect while the first request is queued.
 */
export function queueAccountMail(services: Services, request: AccountRequest): Promise<void> {
  return put(services, digestOf(`${request.purpose} ${request.account}`), { request });
}

/**
 * Decrypts the content of a queued mail.
 * @throws OperatorError the row was encrypted with a different instance secret
 */
export function contentOf(
  services: Services,
  row: { readonly id: string; readonly sealed: string },
): Content {
  return JSON.parse(services.sealer.open(row.sealed, purposeOf(row.id))) as Content;
}
