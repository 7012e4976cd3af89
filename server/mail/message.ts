import { email } from "@gatehouse-access/sdk/contract";
import type { SendMailOptions } from "nodemailer";
import { type Mail, MailError } from "./mail.ts";

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
