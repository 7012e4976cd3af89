import { join } from "node:path";
import type { FastifyBaseLogger } from "fastify";
import { fileMailer } from "./fileMailer.ts";
import type { Mailer } from "./mail.ts";
import { type SmtpServer, smtpMailer } from "./smtpMailer.ts";

/** Configuration of outgoing mails. */
export interface MailConfig {
  /** Undefined: mails are written into files of the data folder. */
  readonly server: SmtpServer | undefined;
  /** Address of the sender, with or without a name. */
  readonly from: string;
}

/** @param log gets the logger, which may not exist before a mail is sent */
export function mailerOf(config: MailConfig, dataDir: string, log: () => FastifyBaseLogger): Mailer {
  const { server, from } = config;
  if (server) return smtpMailer(server, from);
  return fileMailer(join(dataDir, "mail"), from, (file) => {
    log().warn({ file }, "no mail server is set (GATEHOUSE_SMTP_URL): a mail was written into a file");
  });
}
