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
