import { OperatorError } from "../OperatorError.ts";

/** A mail to one person, in plain text. */
export interface Mail {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
}

/** Sends mail. */
export interface Mailer {
  /** @throws Error when the mail could not be handed over */
  send(mail: Mail): Promise<void>;
}

/** Of a service that was not told how to send mail. */
export const withoutMail: Mailer = {
  send: async () => {
    throw new OperatorError("no mail server is set");
  },
};
