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

/** Takes mails to their readers. */
export interface Mailer {
  /**
   * To be called after the transaction that the mail is about, never inside of it.
   * @throws MailError the mail was not taken over
   */
  send(mail: Mail): Promise<void>;
}

/** A mail was not taken over. The message holds no address, text or password, and goes to the log. */
export class MailError extends Error {
  override readonly name = "MailError";
}

/**
 * A mail as the library takes it.
 * @throws MailError the recipient is not one address, or the subject is not one line: what follows a line break would
 * be a header of its own
 */
export function messageOf(from: string, { to, subject, text }: Mail): SendMailOptions {
  if (!email.safeParse(to).success) throw new MailError("to: must be one e-mail address");
  if (/\p{Cc}/u.test(subject)) throw new MailError("subject: must be one line");
  return {
    from,
    // As an object it is one address, and not read as a list of them.
    to: { name: "", address: to },
    subject,
    text,
    // Programs that answer mails by themselves leave these alone (RFC 3834, section 5).
    headers: { "Auto-Submitted": "auto-generated" },
    disableFileAccess: true,
    disableUrlAccess: true,
  };
}
