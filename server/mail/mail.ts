import { email } from "@gatehouse-access/sdk/contract";
import type { SendMailOptions } from "nodemailer";

/** A plain-text message to one recipient. */
export interface Mail {
  /** E-mail address of the recipient. */
  readonly to: string;
  /** Subject, a single line. */
  readonly subject: string;
  readonly text: string;
}

/** A transport for mails. */
export interface Mailer {
  /**
   * Sends a mail. Call it outside transactions.
   * @throws MailError the mail server did not accept the mail
   */
  send(mail: Mail): Promise<void>;
}

/**
 * The error of a mail that is invalid, or that the mail server did not accept. The message of this error is logged, so
 * it contains no mail address, mail text or password.
 */
export class MailError extends Error {
  override readonly name = "MailError";
}

/**
 * Converts a mail to the format of the mail library.
 * @throws MailError the recipient is not a single address, or the subject is not a single line. In a subject, text
 * after a line break would become another header.
 */
export function messageOf(from: string, { to, subject, text }: Mail): SendMailOptions {
  if (!email.safeParse(to).success) throw new MailError("to must be one e-mail address");
  if (/\p{Cc}/u.test(subject)) throw new MailError("subject must be one line");
  return {
    from,
    // Pass the recipient as an object, because the library uses an object as a single address. It would parse a string
    // as a list of addresses.
    to: { name: "", address: to },
    subject,
    text,
    // Automatic responders do not reply to mails with this header (RFC 3834, section 5).
    headers: { "Auto-Submitted": "auto-generated" },
    disableFileAccess: true,
    disableUrlAccess: true,
  };
}
