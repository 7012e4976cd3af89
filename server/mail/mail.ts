import { email } from "@gatehouse-access/sdk/contract";
import type { SendMailOptions } from "nodemailer";

/** A message to one person, as plain text. */
export interface Mail {
  /** One e-mail address. */
  readonly to: string;
  /** One line. */
  readonly subject: string;
  readonly text: string;
}

/** Sends mails. */
export interface Mailer {
  /**
   * To be called after the transaction that the mail is about, never inside of it.
   * @throws MailError the mail was not accepted
   */
  send(mail: Mail): Promise<void>;
}

/** A mail was not accepted. The message goes to the log, and holds no address, text or password. */
export class MailError extends Error {
  override readonly name = "MailError";
}

/**
 * Converts a mail to the library's form.
 * @throws MailError the recipient is not one address, or the subject is not one line: text after a line break would be
 * another header
 */
export function messageOf(from: string, { to, subject, text }: Mail): SendMailOptions {
  if (!email.safeParse(to).success) throw new MailError("to: must be one e-mail address");
  if (/\p{Cc}/u.test(subject)) throw new MailError("subject: must be one line");
  return {
    from,
    // An object is one address; a string would be read as a list.
    to: { name: "", address: to },
    subject,
    text,
    // Automatic responders do not reply to such mails (RFC 3834, section 5).
    headers: { "Auto-Submitted": "auto-generated" },
    disableFileAccess: true,
    disableUrlAccess: true,
  };
}
