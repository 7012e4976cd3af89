import { randomUUID } from "node:crypto";
import { putRow } from "../../db/sql/rows.ts";
import type { Mail } from "../../mail/mail.ts";
import { digestOf } from "../../secrets/digest.ts";
import type { Services, SqlServices } from "../../services.ts";

/** The purposes of mails about an account. */
export type AccountPurpose = "activation" | "recovery" | "mfaReset";

/** A request for a mail about a named account. Whether the account exists shows when the mail is sent. */
export interface AccountRequest {
  readonly purpose: AccountPurpose;
  /** Username or e-mail, in lower case. */
  readonly account: string;
}

type Content = { readonly mail: Mail } | { readonly request: AccountRequest };

const purposeOf = (id: string): string => `mail ${id}`;

async function put(services: SqlServices, id: string, content: Content): Promise<void> {
  const now = services.now();
  const sealed = services.sealer.seal(JSON.stringify(content), purposeOf(id));
  await putRow(services.db, "OutgoingMail", { id }, { sealed }, { createdAt: now, dueAt: now });
}

/** Queues a mail as a part of the transaction; it is sent after the commit. */
export function queueMail(services: SqlServices, mail: Mail): Promise<void> {
  return put(services, randomUUID(), { mail });
}

/**
 * Queues the mail about an account, which is sent if the account exists. The user is not looked up here, so that the
 * response time does not show whether there is one. While such a request waits, another one adds nothing.
 */
export function queueAccountMail(services: Services, request: AccountRequest): Promise<void> {
  return put(services, digestOf(`${request.purpose} ${request.account}`), { request });
}

/** @throws OperatorError the row was sealed by another instance secret */
export function contentOf(
  services: Services,
  row: { readonly id: string; readonly sealed: string },
): Content {
  return JSON.parse(services.sealer.open(row.sealed, purposeOf(row.id))) as Content;
}
