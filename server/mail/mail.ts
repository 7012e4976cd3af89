import { email } from "@gatehouse-access/sdk/contract";
import type { SendMailOptions } from "nodemailer";

/** A plain-text message to one recipient. */
export interface Mail {
  /** One e-mail address. */
  readonly to: string;
  /** One line. */
  readonly subject: string;
  readonly text: string;
}

/** A transport for mails. */
export interface Mailer {
  /**
   * Sends a mail. Call it after the transaction that the mail concerns, never in the transaction.
   * @throws MailError the mail was not accepted
   */
  send(mail: Mail): Promise<void>;
}

/** A mail was not accepted. The message is logged, so it contains no address, text or password. */
export class MailError extends Error {
  override readonly name = "MailError";
}

/**
 * Converts a mail to the library's form.
 * @throws MailError the recipient is not a single address, or the subject is not a single line. Text after a line
 * break would become another header.
 */
export function messageOf(from: string, { to, subject, text }: Mail): SendMailOptions {
  if (!email.safeParse(to).success) throw new MailError("to: must be one e-mail address");
  if (/\p{Cc}/u.test(subject)) throw new MailError("subject: must be one line");
  return {
    from,
    // The library parses an object as one address, but a string as a list.
    to: { name: "", address: to },
    subject,
    text,
    // Automatic responders do not reply to mails with this header (RFC 3834, section 5).
    headers: { "Auto-Submitted": "auto-generated" },
    disableFileAccess: true,
    disableUrlAccess: true,
  };
}
