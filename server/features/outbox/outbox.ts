import { randomUUID } from "node:crypto";
import type { Mail } from "../../mail/mail.ts";
import { digestOf } from "../../secrets/digest.ts";
import type { Services } from "../../services.ts";

/** What the mails about an account are for. */
export type AccountPurpose = "activation" | "recovery" | "mfaReset";

/** The mail that somebody asked for by naming an account. Whether there is one shows when it is sent. */
export interface AccountRequest {
  readonly purpose: AccountPurpose;
  /** Username or e-mail, in lower case. */
  readonly account: string;
}

type Content = { readonly mail: Mail } | { readonly request: AccountRequest };

const purposeOf = (id: string): string => `mail ${id}`;

async function put(services: Services, id: string, content: Content): Promise<void> {
  const now = services.now();
  const sealed = services.sealer.seal(JSON.stringify(content), purposeOf(id));
  await services.db.outgoingMail.upsert({
    where: { id },
    create: { id, sealed, createdAt: now, dueAt: now },
    update: { sealed },
  });
}

/** Has a mail sent once the transaction that this is a part of is done; without its success there is none. */
export function queueMail(services: Services, mail: Mail): Promise<void> {
  return put(services, randomUUID(), { mail });
}

/**
 * Has the mail about an account sent, if there is such an account. It takes the same time whether there is one: the
 * user is not looked for. While such a request waits another one adds nothing.
 */
export function queueAccountMail(services: Services, request: AccountRequest): Promise<void> {
  return put(services, digestOf(`${request.purpose} ${request.account}`), { request });
}

/** @throws OperatorError sealed by another instance secret */
export function contentOf(
  services: Services,
  row: { readonly id: string; readonly sealed: string },
): Content {
  return JSON.parse(services.sealer.open(row.sealed, purposeOf(row.id))) as Content;
}
